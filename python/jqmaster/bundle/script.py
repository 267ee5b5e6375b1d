"""Lays out one script: which items it reaches, and where each stands.

Redis runs a script's whole chunk at every call: each function defined costs some hundred instructions, each local of
the chunk that it uses some more. Hence a chunk has one table, which holds all that functions use of one another. It is
filled by one function, with what is first looked for: the functions and small values of a module that the script
reaches, or another value.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterable, Sequence

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
    """Turns a parsed script into the text of its chunk, without the ``#!lua`` line. ``common``: labels of items."""

    def __init__(self, script: ScriptBody, common: Container[str] = ()) -> None:
        self.script = script
        self.globals: dict[str, Item] = {}
        self.reached: dict[Item, None] = {}  # each behind what it needs
        for item in self.uses(script.pieces):
            self.reach(item, [])
        self.first = [item for item in self.reached if str(item) in common and self.is_early(item)]
        self.groups: dict[Hashable, list[Item]] = {}
        for item in self.reached:
            if item not in self.first:
                self.groups.setdefault(self.group(item), []).append(item)
        self.places = {item: f"F_[{n}]" for n, item in enumerate(self.first, 1)}
        for n, (group, items) in enumerate(self.groups.items(), len(self.first) + 1):
            for index, item in enumerate(items, 1):
                self.places[item] = f"F_[{n}]" + (f"[{index}]" if group is not item else "")

    def group(self, item: Item) -> Hashable:
        """What is added together."""
        return item.module if item.is_function else item

    def is_early(self, item: Item) -> bool:
        """Whether it can be defined before anything else is there."""
        return item.is_function or not any(isinstance(piece, Mention) for piece in item.pieces)

    def text(self) -> str:
        """The chunk: the table, the function that fills it, the script's body."""
        entries = [*map(self.define, self.first)]
        if self.groups:
            entries.append(f"__index = {self.adder()}")
        table = "local F_\nF_ = {\n" + ",\n".join(entries) + "\n}\nsetmetatable(F_, F_)\n"
        body = self.render(self.script.pieces)
        return table + FRAME % (f"function()\n{body}\nend", "function(problem) return problem end", "")

    def target(self, item: Item) -> Item:
        """What a use of ``item`` really uses: the item it is another name of, or a global that several modules hold."""
        texts = [piece.text for piece in item.pieces if isinstance(piece, Token)]
        first = item.pieces[0]
        if isinstance(first, Mention) and len(item.pieces) == 1:
            return self.target(first.item)
        if len(texts) in (1, 3) and texts[1:2] in ([], ["."]):
            return self.globals.setdefault("".join(texts), item)
        return item

    def adder(self) -> str:
        """The function that adds to the table what is looked for and not there yet."""
        additions = []
        for group, items in self.groups.items():
            entries = ",\n".join(map(self.define, items))
            additions.append(f"v = {entries}" if group is items[0] else f"v = {{\n{entries}\n}}")
        return f"function(_, n)\nlocal v\n{_choice(len(self.first) + 1, additions)}\nF_[n] = v\nreturn v\nend"

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
        if item not in self.reached:
            for used in self.uses(item.pieces):
                if used is not item:
                    self.reach(used, [*path, item])
            self.reached[item] = None

    def render(self, pieces: Iterable[Piece]) -> str:
        """The text of ``pieces``."""
        out: list[str] = []
        for piece in pieces:
            if isinstance(piece, Mention):
                text = inlined(piece) or self.places[self.target(piece.item)]
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
