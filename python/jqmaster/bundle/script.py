"""Lays out one script: which items it reaches, which of them its common calls need, and where each stands.

Redis runs a script's whole chunk at every call: each function defined costs some hundred instructions, each local of
the chunk that it uses some more. Hence a chunk has one table, which holds all that functions use of one another. What
the plainest call needs is put into it at once; everything else when it is first looked for, by one function: what other
known calls need together (``scripts/common.json``), the rest of a module's functions, a single value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from jqmaster.bundle.source import BuildError, Item, Mention, Piece, ScriptBody, Token

_ARITHMETIC = frozenset("+ - * / % ^ ( )".split())
_LITERAL = re.compile(r"[\d(\"'[].*|true|false|nil", re.DOTALL)
_SUFFIXES = ("(", "{", "[", ".", ":")
# What check.refuse raises is the reply. pcall would give the text of an error alone.
FRAME = """\
local ok, reply = xpcall(%s, %s)
%sif ok or type(reply) == "table" and reply.is_refusal then
return reply
end
error(reply, 0)
"""
_MOST_COMMON = 120  # each may take a local: Lua allows 200, and the table is made of 50 more at a time


def literal(item: Item) -> str | None:
    """The text that can stand for ``item`` everywhere: a string, a number, or arithmetic on numbers."""
    if item.is_function:
        return None
    parts = [(literal(piece.item) or "") if isinstance(piece, Mention) else piece.text for piece in item.pieces]
    if len(parts) == 1:
        return parts[0] if _LITERAL.fullmatch(parts[0]) else None
    is_arithmetic = all(part in _ARITHMETIC or part[:1].isdigit() or part[:1] == "(" for part in parts)
    return "(" + " ".join(parts) + ")" if is_arithmetic else None


def inlined(reference: Mention) -> str | None:
    """The literal for this use, unless what follows would read it differently."""
    text = literal(reference.item)
    if text is None or reference.after in _SUFFIXES:
        return None
    return f"({text})" if text[-1].isalnum() and reference.after == ".." else text


class Chunk:
    """Turns a parsed script into the text of its chunk, without the ``#!lua`` line.

    ``calls``: labels of the items that known calls need; the first is the one that is to cost least.
    """

    when_needed = ""  # Lua that runs when ``n`` is first looked for: for tests

    def __init__(self, script: ScriptBody, calls: Sequence[Collection[str]] = ()) -> None:
        self.script = script
        self.calls = calls or [()]
        self.globals: dict[str, Item] = {}
        self.dependencies: dict[Item, list[Item]] = {}  # every item reached, each behind what it needs
        for item in self.uses(script.pieces):
            self.reach(item, [])
        self.hot: dict[Item, None] = {}  # what the first of the calls needs
        for item in self.dependencies:
            if str(item) in self.calls[0] and self.is_early(item) and len(self.hot) < _MOST_COMMON:
                self.hot[item] = None
        self.lazy: dict[Hashable, list[Item]] = {}
        for item in self.dependencies:
            if item not in self.hot:
                self.lazy.setdefault(self.group(item), []).append(item)
        # Before there is the table, values need each other.
        self.locals = {item: f"L{n}_" for n, item in enumerate(self.hot) if not item.is_function}
        self.places = {item: f"F_[{n}]" for n, item in enumerate(self.hot, 1)}
        for n, (group, items) in enumerate(self.lazy.items(), len(self.hot) + 1):
            for index, item in enumerate(items, 1):
                self.places[item] = f"F_[{n}]" + (f"[{index}]" if group is not item else "")

    def text(self) -> str:
        """The chunk: the table with what is common, the function that adds the rest, the script's body."""
        out = [f"local {name} = {self.render(item.pieces, self.locals)}" for item, name in self.locals.items()]
        out.append("local F_")
        entries = [self.locals.get(item) or self.define(item) for item in self.hot]
        if self.lazy:
            entries.append(f"__index = {self.adder()}")
        out.append("F_ = {\n" + ",\n".join(entries) + "\n}\nsetmetatable(F_, F_)")
        body = self.render(self.script.pieces)
        frame = FRAME % (f"function()\n{body}\nend", "function(problem) return problem end", "")
        return "\n".join([*out, frame])

    def target(self, item: Item) -> Item:
        """What a use of ``item`` really uses: the item it is another name of, or a global that several modules hold."""
        texts = [piece.text for piece in item.pieces if isinstance(piece, Token)]
        first = item.pieces[0]
        if isinstance(first, Mention) and len(item.pieces) == 1:
            return self.target(first.item)
        if len(texts) in (1, 3) and texts[1:2] in ([], ["."]):
            return self.globals.setdefault("".join(texts), item)
        return item

    def is_early(self, item: Item) -> bool:
        """Whether it can be defined when nothing but values among those in the table from the beginning is there."""
        return item.is_function or all(used in self.hot and not used.is_function for used in self.dependencies[item])

    def group(self, item: Item) -> Hashable:
        """What is added to the table together: what the same calls need, else functions of a module."""
        needed_by = tuple(str(item) in call for call in self.calls)
        if any(needed_by) and self.is_early(item):
            return needed_by
        return item.module if item.is_function else item

    def adder(self) -> str:
        """The function that adds to the table what is looked for and not there yet."""
        additions = []
        for group, items in self.lazy.items():
            entries = ",\n".join(map(self.define, items))
            additions.append(f"v = {entries}" if group is items[0] else f"v = {{\n{entries}\n}}")
        choice = _choice(len(self.hot) + 1, additions)
        return f"function(_, n)\nlocal v\n{self.when_needed}\n{choice}\nF_[n] = v\nreturn v\nend"

    def define(self, item: Item) -> str:
        return "function" * item.is_function + self.render(item.pieces)

    def uses(self, pieces: Iterable[Piece]) -> list[Item]:
        """The items that ``pieces`` refer to, each once, in order of appearance."""
        references = [piece for piece in pieces if isinstance(piece, Mention)]
        return list(dict.fromkeys(self.target(piece.item) for piece in references if inlined(piece) is None))

    def reach(self, item: Item, path: list[Item]) -> None:
        if item in path:
            circle = " -> ".join(map(str, [*path[path.index(item) :], item]))
            raise BuildError(item.module.file, item.line, f"items need each other: {circle}")
        if item not in self.dependencies:
            needed = [used for used in self.uses(item.pieces) if used is not item]
            for used in needed:
                self.reach(used, [*path, item])
            self.dependencies[item] = needed

    def render(self, pieces: Iterable[Piece], local: Mapping[Item, str] | None = None) -> str:
        """The text of ``pieces``. ``local``: what stands in locals there."""
        out: list[str] = []
        for piece in pieces:
            if isinstance(piece, Mention):
                target = self.target(piece.item)
                text = inlined(piece) or (local or {}).get(target) or self.places[target]
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
