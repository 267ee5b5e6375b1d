"""Lays out one script: which items it reaches, which of them its common calls need, and where each stands.

Redis runs a script's whole chunk at every call: each function defined costs some hundred instructions, each local of
the chunk that it uses some more. Hence a chunk has one table, which holds all that functions use of one another. What
the plainest call needs is put into it at once; everything else when it is first looked for, by one function: what other
known calls need together (``scripts/common.json``), the rest of a module's functions, a single value.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from jqmaster.bundle.module import Item, ModuleReference, Piece, ScriptBody
from jqmaster.bundle.tokens import BINARY, UNARY, BuildError

_ARITHMETIC = frozenset("+ - * / % ^ ( )".split())
_BEFORE_OPERAND = BINARY | UNARY | {"(", "{", "[", ",", "=", "return", "in"}
_CONSTANTS = frozenset(["true", "false", "nil"])
_MOST_COMMON = 120  # each may take a local: Lua allows 200, and the table is made of 50 more at a time


class Literals:
    """Which items stand for a value that can be written in their place."""

    def __init__(self) -> None:
        self.globals: dict[str, Item] = {}

    def target(self, item: Item) -> Item:
        """What a use of ``item`` really uses: itself, the item it is another name of, or a shared global."""
        if item.function:
            return item
        if len(item.pieces) == 1 and isinstance(item.pieces[0], ModuleReference):
            return self.target(item.pieces[0].item)
        tokens = [piece for piece in item.pieces if not isinstance(piece, ModuleReference)]
        texts = [token.text for token in tokens]
        if all(token.kind == "name" for token in tokens[::2]) and all(text == "." for text in texts[1::2]):
            if len(tokens) == len(item.pieces) and len(tokens) % 2 == 1:
                # Several modules keep a global such as redis.call in a local: one place serves them all.
                name = "".join(texts)
                return self.globals.setdefault(name, replace(item, module="global", name=name))
        return item

    def literal(self, item: Item) -> str | None:
        """The text that can stand for ``item`` everywhere: a string, a number, or arithmetic on numbers."""
        if item.function or item.shared:
            return None
        first = item.pieces[0]
        if len(item.pieces) == 1 and not isinstance(first, ModuleReference):
            if first.kind in ("string", "number") or first.text in _CONSTANTS:
                return first.text
            return None
        parts = []
        for piece in item.pieces:
            if isinstance(piece, ModuleReference):
                text = self.literal(self.target(piece.item)) or ""
                if not (text[:1].isdigit() or text[:1] in ("(", ".")):
                    return None
            elif piece.kind == "number" or piece.text in _ARITHMETIC:
                text = piece.text
            else:
                return None
            parts.append(text)
        return "(" + " ".join(parts) + ")"

    def inlined(self, reference: ModuleReference) -> str | None:
        """The literal for this use, unless what follows would read it differently."""
        text = self.literal(self.target(reference.item))
        if text is None or reference.following in ("(", "{", '""'):
            return None
        if reference.following in ("[", ".", ":"):
            # In brackets it would be taken for a call's arguments, if an expression could end before it.
            return f"({text})" if reference.preceding in _BEFORE_OPERAND else None
        return f"({text})" if text[-1].isalnum() and reference.following.startswith(".") else text


class Linker(Literals):
    """Turns a parsed script into the text of its chunk, without the ``#!lua`` line.

    ``calls``: labels of the items that known calls need; the first is the one that is to cost least.
    """

    when_needed = ""  # Lua that runs when ``n`` is first looked for: for tests

    def __init__(self, body: ScriptBody, calls: Sequence[Collection[str]] = ()) -> None:
        super().__init__()
        self.body = body
        self.calls = calls
        self.dependencies: dict[Item, list[Item]] = {}
        self.order: list[Item] = []  # every item reached, each behind what it needs
        self.sort(self.uses(body.pieces))
        taken = set(body.names).union(*{item.where.names for item in self.order})
        self.table = _unique("F", taken)
        self.hot = self.common()
        self.lazy: dict[Hashable, list[Item]] = {}
        for item in self.order:
            if item not in self.hot:
                self.lazy.setdefault(self.group(item), []).append(item)
        # What the chunk's own statements use stands in a local as well.
        self.locals = {
            item: _unique(item.label().replace(".", "_"), taken)
            for item in self.hot
            if not item.function or item in self.uses(body.pieces)
        }
        self.places = {item: f"{self.table}[{n}]" for n, item in enumerate(self.hot, 1)}
        for n, (group, items) in enumerate(self.lazy.items(), len(self.hot) + 1):
            for index, item in enumerate(items, 1):
                self.places[item] = f"{self.table}[{n}]" + (f"[{index}]" if group is not item else "")

    def link(self) -> str:
        """The chunk: the table with what is common, the function that adds the rest, the script's body."""
        out = [self.define_local(item) for item in self.locals if not item.function]
        if self.order:
            out.append(f"local {self.table}")
            out += [self.define_local(item) for item in self.locals if item.function]
            entries = [self.locals.get(item) or self.define(item) for item in self.hot]
            if self.lazy:
                entries.append(f"__index = {self.adder()}")
            out.append(f"{self.table} = {{\n" + ",\n".join(entries) + "\n}")
        if self.lazy:
            out.append(f"setmetatable({self.table}, {self.table})")
        out.append(self.render(self.body.pieces, self.locals))
        return "\n".join(out) + "\n"

    def common(self) -> dict[Item, None]:
        """What the first of the calls needs, except values that need the table to be computed."""
        wanted = set(self.calls[0] if self.calls else ())
        found: dict[Item, None] = {}
        for item in self.order:
            if item.label() in wanted and self.is_early(item, found) and len(found) < _MOST_COMMON:
                found[item] = None
        return found

    def is_early(self, item: Item, hot: Container[Item]) -> bool:
        """Whether it can be defined when nothing but values among ``hot`` is there."""
        needed = () if item.function else self.dependencies[item]
        return all(used in hot and not used.function for used in needed)

    def group(self, item: Item) -> Hashable:
        """What is added to the table together: functions that the same calls need, else those of a module."""
        needed_by = tuple(item.label() in call for call in self.calls)
        if any(needed_by) and self.is_early(item, self.hot):
            return needed_by
        return (item.module, item.cold) if item.function else item

    def adder(self) -> str:
        """The function that adds to the table what is looked for and not there yet."""
        additions = []
        for group, items in self.lazy.items():
            entries = ",\n".join(map(self.define, items))
            additions.append(f"v = {entries}" if group is items[0] else f"v = {{\n{entries}\n}}")
        lines = ["function(_, n)", "local v", self.when_needed, _choice(len(self.hot) + 1, additions)]
        return "\n".join(filter(None, [*lines, f"{self.table}[n] = v", "return v", "end"]))

    def define_local(self, item: Item) -> str:
        if item.function:
            return f"local function {self.locals[item]}{self.render(item.pieces)}"
        return f"local {self.locals[item]} = {self.render(item.pieces, self.locals)}"

    def define(self, item: Item) -> str:
        return "function" * item.function + self.render(item.pieces)

    def uses(self, pieces: Iterable[Piece]) -> list[Item]:
        """The items that ``pieces`` refer to, each once, in order of appearance."""
        found: dict[Item, None] = {}
        for piece in pieces:
            if isinstance(piece, ModuleReference) and self.inlined(piece) is None:
                found[self.target(piece.item)] = None
        return list(found)

    def sort(self, roots: list[Item]) -> None:
        """Fill ``order`` and ``dependencies``; refuses functions that need each other."""
        done: set[Item] = set()

        def visit(item: Item, path: list[Item]) -> None:
            if item in path:
                circle = " -> ".join(step.label() for step in [*path[path.index(item) :], item])
                raise BuildError(item.where.file, item.line, f"items need each other: {circle}")
            if item in done:
                return
            self.dependencies[item] = [used for used in self.uses(item.pieces) if used is not item]
            for used in self.dependencies[item]:
                visit(used, [*path, item])
            done.add(item)
            self.order.append(item)

        for root in roots:
            visit(root, [])

    def render(self, pieces: Iterable[Piece], local: Mapping[Item, str] | None = None) -> str:
        """The text of ``pieces``. ``local``: what stands in locals there."""
        out: list[str] = []
        for piece in pieces:
            if isinstance(piece, ModuleReference):
                target = self.target(piece.item)
                text = self.inlined(piece) or (local or {}).get(target) or self.places[target]
            else:
                text = piece.text
            out.append(piece.space + text)
        return "".join(out).lstrip()


def _choice(first: int, branches: Sequence[str]) -> str:
    """Lua that runs the branch of ``n``, the first of them being that of ``first``."""
    if len(branches) == 1:
        return branches[0]
    middle = len(branches) // 2
    low, high = _choice(first, branches[:middle]), _choice(first + middle, branches[middle:])
    return f"if n < {first + middle} then\n{low}\nelse\n{high}\nend"


def _unique(base: str, taken: set[str]) -> str:
    """``base``, with a number behind it where that name is taken; then it is."""
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name
