"""Lays out one script: which items it reaches, where each is defined, what each is called.

Redis runs a script's whole chunk at every call, so that each function defined in it costs about a thousand
instructions whether it is used or not. Hence only what a script reaches is in it, and what only its cold
functions reach is defined inside these, anew whenever one is called. The functions of a lazy module are
defined together, once, when the first of them is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .luamodule import Item, Piece, Reference, ScriptBody, identifiers, parameters_end
from .luatokens import BINARY, UNARY, BuildError

_ARITHMETIC = frozenset("+ - * / % ^ ( )".split())
_BEFORE_OPERAND = BINARY | UNARY | {"(", "{", "[", ",", "=", "return", "in"}
_CONSTANTS = frozenset(["true", "false", "nil"])
_GROUP_UPVALUES = 50  # Lua's limit is 60
_GLOBAL = "global"  # module of the items that hold a global such as redis.call


class Literals:
    """Which items stand for a value that can be written in their place."""

    def __init__(self) -> None:
        self.globals: dict[str, Item] = {}

    def target(self, item: Item) -> Item:
        """What a use of ``item`` really uses: itself, the item it is another name of, or a shared global."""
        if item.function or len(item.names) != 1:
            return item
        if len(item.pieces) == 1 and isinstance(item.pieces[0], Reference):
            reference = item.pieces[0]
            return item if len(reference.item.names) != 1 else self.target(reference.item)
        texts = ["" if isinstance(piece, Reference) else piece.text for piece in item.pieces]
        tokens = [piece for piece in item.pieces if not isinstance(piece, Reference)]
        if all(token.kind == "name" for token in tokens[::2]) and all(text == "." for text in texts[1::2]):
            if len(tokens) == len(item.pieces) and len(tokens) % 2 == 1:
                return self.globals.setdefault("".join(texts), _global_item(item, "".join(texts)))
        return item

    def literal(self, item: Item) -> str | None:
        """The text that can stand for ``item`` everywhere: a string, a number, or arithmetic on numbers."""
        if item.function or item.shared or len(item.names) != 1:
            return None
        first = item.pieces[0]
        if len(item.pieces) == 1 and not isinstance(first, Reference):
            if first.kind in ("string", "number") or first.text in _CONSTANTS:
                return first.text
            return None
        parts = []
        for piece in item.pieces:
            if isinstance(piece, Reference):
                text = self.literal(self.target(piece.item)) or ""
                if not (text[:1].isdigit() or text[:1] in ("(", ".")):
                    return None
            elif piece.kind == "number" or piece.text in _ARITHMETIC:
                text = piece.text
            else:
                return None
            parts.append(text)
        return "(" + " ".join(parts) + ")"

    def inlined(self, reference: Reference) -> str | None:
        """The literal for this use, unless what follows would read it differently."""
        text = self.literal(self.target(reference.item))
        if text is None or reference.following in ("(", "{", '""'):
            return None
        if reference.following in ("[", ".", ":"):
            # In brackets it would be taken for a call's arguments, if an expression could end before it.
            return f"({text})" if reference.preceding in _BEFORE_OPERAND else None
        return f"({text})" if text[-1].isalnum() and reference.following.startswith(".") else text


class Linker(Literals):
    """Turns a parsed script into the text of its chunk, without the ``#!lua`` line."""

    def __init__(self, body: ScriptBody) -> None:
        super().__init__()
        self.body = body
        self.dependencies: dict[Item, list[Item]] = {}
        self.order: list[Item] = []  # every item reached, each behind what it needs
        self.top: set[Item] = set()  # the items defined at the top of the chunk
        self.fetched: dict[Item, str] = {}  # cold functions of a group, lazy functions: how to get them
        self.inside = ""  # the lazy module whose functions are being written
        self.taken: set[str] = set()  # names in use
        spans = [range(start, end) for start, _, end in body.cold]
        self.cold_uses = [self.uses(body.pieces[span.start : span.stop]) for span in spans]
        self.hot_uses = self.uses(
            piece for index, piece in enumerate(body.pieces) if not any(index in span for span in spans)
        )
        self.sort([*self.hot_uses, *(item for uses in self.cold_uses for item in uses)])
        self.names = self.name_items()
        self.lazy_names: dict[str, tuple[str, str]] = {}  # by module: what gives a function, where they are

    def link(self) -> str:
        """The chunk: items at the top, the cold functions, then the script's body."""
        shared = [item for item in self.order if item.shared]
        self.top = self.reach([*self.hot_uses, *shared], set(), into_cold=False)
        lazy = self.group_lazy()
        groups = self.group_cold()
        forward = [*groups, *(name for names in self.lazy_names.values() for name in names)]
        out: list[str] = [f"local {', '.join(forward)}"] if forward else []
        out += [
            self.define(item, nested=item.cold)
            for item in self.order
            if item in self.top and item not in self.fetched
        ]
        out += [self.define_group(name, items) for name, items in groups.items()]
        out += [self.define_lazy(module, lazy[module]) for module in lazy]
        inserts = {}
        for (_, insertion, _), uses in zip(self.body.cold, self.cold_uses, strict=True):
            inserts[insertion] = self.nest(uses)
        out.append(self.render(self.body.pieces, inserts).lstrip())
        return "\n".join(out) + "\n"

    def group_cold(self) -> dict[str, list[Item]]:
        """Put the cold functions of the top into groups, each within one function that hands them out.

        A call then pays for one function, not for each of them. What the top's values need is left
        out: they are computed before a group is there.
        """
        values = [item for item in self.top if not item.function]
        early = self.reach(values, set(), into_cold=False)
        cold = [item for item in self.order if item in self.top and item.cold and item not in early]
        groups: list[list[Item]] = []
        captured: set[Item] = set()
        for item in cold if len(cold) > 1 else ():
            inside = [item, *self.reach(self.dependencies[item], self.top, into_cold=True)]
            outside = {used for inner in inside for used in self.dependencies[inner]} & self.top
            if not groups or len(captured | outside) > _GROUP_UPVALUES:
                groups.append([])
                captured = set()
            groups[-1].append(item)
            captured |= outside
        named = {self.unique("cold"): items for items in groups}
        for name, items in named.items():
            self.fetched |= {item: f"{name}({number})" for number, item in enumerate(items, 1)}
        return named

    def group_lazy(self) -> dict[str, list[Item]]:
        """The lazy functions that are reached, by module."""
        groups: dict[str, list[Item]] = {}
        for item in self.order:
            if item.lazy:
                groups.setdefault(item.module, []).append(item)
        self.lazy_names = {
            module: (self.unique(f"lazy_{_plain(module)}"), self.unique(f"{_plain(module)}_functions"))
            for module in groups
        }
        for module, items in groups.items():
            getter = self.lazy_names[module][0]
            self.fetched |= {item: f"{getter}({number})" for number, item in enumerate(items, 1)}
        return groups

    def define_lazy(self, module: str, items: list[Item]) -> str:
        """A function that defines the module's functions when it is first called, and returns one."""
        getter, functions = self.lazy_names[module]
        needed = [used for item in items for used in self.dependencies[item]]
        inside = self.reach(needed, self.top, into_cold=True) | set(items)
        self.inside = module
        definitions = [self.define(item) for item in self.order if item in inside]
        self.inside = ""
        named = ", ".join(self.names[item, item.name] for item in items)
        lines = [f"function {getter}(n)", f"if not {functions} then", *definitions]
        return "\n".join([*lines, f"{functions} = {{ {named} }}", "end", f"return {functions}[n]", "end"])

    def define_group(self, name: str, items: list[Item]) -> str:
        """A function that defines and returns the item of a number."""
        branches = []
        for number, item in enumerate(items, 1):
            body = self.nest(self.dependencies[item]) + "\n" + self.define(item)
            branches.append(f"if n == {number} then{body}\nreturn {self.names[item, item.name]}\nend")
        return "\n".join([f"function {name}(n)", *branches, "end"])

    def uses(self, pieces: Iterable[Piece]) -> list[Item]:
        """The items that ``pieces`` refer to, each once, in order of appearance."""
        found: dict[Item, None] = {}
        for piece in pieces:
            if isinstance(piece, Reference) and self.inlined(piece) is None:
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

    def reach(self, roots: Iterable[Item], stop: set[Item], *, into_cold: bool) -> set[Item]:
        """What ``roots`` need, themselves included, without ``stop``; what cold ones need on demand."""
        found: set[Item] = set()
        waiting = list(roots)
        while waiting:
            item = waiting.pop()
            if item not in found and item not in stop and not item.lazy:
                found.add(item)
                if into_cold or not item.cold:
                    waiting += self.dependencies[item]
        return found

    def name_items(self) -> Mapping[tuple[Item, str], str]:
        """Give every item a name that no source uses for anything."""
        self.taken |= self.body.names
        for cursor in dict.fromkeys(item.where for item in self.order):
            self.taken |= identifiers(cursor)
        names = {}
        for item in self.order:
            for name in item.names:
                whole = name.replace(".", "_") if item.module == _GLOBAL else f"{_plain(item.module)}_{name}"
                names[item, name] = self.unique(whole)
        return names

    def unique(self, base: str) -> str:
        """``base``, with a number behind it where that name is taken."""
        name, number = base, 2
        while name in self.taken:
            name, number = f"{base}_{number}", number + 1
        self.taken.add(name)
        return name

    def define(self, item: Item, *, nested: bool = False) -> str:
        """The definition of ``item``; ``nested``: with what is not defined at the top inside it."""
        names = ", ".join(self.names[item, name] for name in item.names)
        if not item.function:
            return f"local {names} = {self.render(item.pieces, {}).lstrip()}"
        inserts = {parameters_end(item.pieces): self.nest(self.dependencies[item])} if nested else {}
        return f"local function {names}{self.render(item.pieces, inserts, item).lstrip()}"

    def nest(self, uses: Iterable[Item]) -> str:
        """Definitions, for the start of a cold function, of what ``uses`` need beyond the top."""
        inside = self.reach(uses, self.top, into_cold=True)
        return "".join("\n" + self.define(item) for item in self.order if item in inside)

    def render(self, pieces: list[Piece], inserts: Mapping[int, str], of: Item | None = None) -> str:
        """The text of ``pieces``, the body of ``of``, with ``inserts`` before the pieces of these indexes."""
        out: list[str] = []
        for index, piece in enumerate(pieces):
            insert = inserts.get(index)
            if insert:
                out.append(insert)
            space = "\n" if insert else piece.space
            if isinstance(piece, Reference):
                target = self.target(piece.item)
                name = piece.name if target is piece.item else target.name
                text = self.inlined(piece) or self.names[target, name]
                if target is not of and not (target.lazy and target.module == self.inside):
                    text = self.fetched.get(target, text)
            else:
                text = piece.text
            out.append(space + text)
        return "".join(out)


def _global_item(like: Item, text: str) -> Item:
    """An item for a global that several modules keep in a local: one local serves them all."""
    return Item(
        _GLOBAL,
        text,
        False,
        False,
        like.where,
        like.statement,
        like.start,
        like.end,
        like.line,
        (text,),
        like.pieces,
    )


def _plain(module: str) -> str:
    """A module's name as a part of an identifier."""
    return module.replace(".", "_")
