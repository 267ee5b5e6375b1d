"""A tokenizer for Lua 5.1 and the few structural questions the bundler asks of a list of tokens.

The bundler needs no syntax tree: knowing where names are declared, where a function or an expression
ends, and what is a key in a table constructor is enough. Lua checks the rest when Redis loads the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

KEYWORDS = frozenset(
    "and break do else elseif end false for function if in local nil not or repeat return then true until while".split()
)
BINARY = frozenset("+ - * / % ^ .. < <= > >= == ~= and or".split())
UNARY = frozenset(["-", "not", "#"])
_OPENING = frozenset(["function", "do", "if", "repeat", "(", "{", "["])
_STATEMENT = frozenset("local function return for if while do repeat".split())
_GOES_ON = BINARY | UNARY | {",", ".", ":"}
_CLOSERS = frozenset(["end", "until", ")", "}", "]"])
_OF_ONE_LINE = frozenset(["name", "keyword", "op", "number"])
CLOSING = {"(": ")", "{": "}", "[": "]"}

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>--\[(?P<c>=*)\[.*?\](?P=c)\] | --(?!\[=*\[)[^\n]*)
      | (?P<string>\[(?P<s>=*)\[.*?\](?P=s)\] | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
      | (?P<number>(?:0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.]))
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<op>\.\.\.|\.\.|==|~=|<=|>=|-(?!-)|[+*/%^\#<>=(){}\[\];:,.])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


class BuildError(Exception):
    """Sources that cannot be bundled. The message begins with ``file:line:`` where a place is known."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")
        self.file = file
        self.line = line


class Token(NamedTuple):
    """One token; ``space`` is what separates it from the one before: nothing, a blank or a newline."""

    kind: str  # name, keyword, string, number, op
    text: str
    line: int
    space: str
    comments: tuple[str, ...] = ()


def tokenize(source: str, file: str) -> list[Token]:
    """Split ``source`` into tokens. Comments go to the ``comments`` of the token that follows them.

    Raises BuildError at what is not Lua: an open string or comment, a malformed number, a stray character.
    """
    tokens: list[Token] = []
    comments: list[str] = []
    position, line, space = 0, 1, ""
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            rest = source[position : position + 20].split("\n")[0]
            raise BuildError(file, line, f"not Lua (open string or comment, or bad number?): {rest!r}")
        kind, text = str(match.lastgroup), match.group()
        if kind in ("space", "comment"):
            if kind == "comment":
                comments.append(text)
            space = "\n" if "\n" in text or space == "\n" else " "
        else:
            if kind == "name" and text in KEYWORDS:
                kind = "keyword"
            tokens.append(Token(kind, text, line, space, tuple(comments)))
            comments, space = [], ""
        if kind not in _OF_ONE_LINE:
            line += text.count("\n")
        position = match.end()
    return tokens


class Cursor:
    """Questions about a token list, with the file's name for messages."""

    def __init__(self, tokens: list[Token], file: str) -> None:
        self.tokens = tokens
        self.file = file
        # Of strings only the quotes, so that none looks like a keyword or an operator.
        self.texts = ['""' if token.kind == "string" else token.text for token in tokens]

    @cached_property
    def names(self) -> frozenset[str]:
        """All that is named, whatever it is."""
        return frozenset(token.text for token in self.tokens if token.kind == "name")

    def text(self, index: int) -> str:
        """The token's text (of strings only the quotes); empty beside the list."""
        return self.texts[index] if 0 <= index < len(self.texts) else ""

    def is_name(self, index: int) -> bool:
        return 0 <= index < len(self.tokens) and self.tokens[index].kind == "name"

    def error(self, index: int, message: str) -> BuildError:
        line = self.tokens[min(index, len(self.tokens) - 1)].line if self.tokens else 1
        return BuildError(self.file, line, message)

    def after(self, index: int) -> int:
        """The index after what closes the bracket or the ``function`` at ``index``."""
        for position, stack in self.nesting(index):
            if not stack:
                return position + 1
        what = self.text(index)
        raise self.error(index, "this function has no end" if what == "function" else f"'{what}' is never closed")

    def nesting(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Yield (index, stack of open brackets and blocks *after* that token). The list is reused."""
        stack: list[str] = []
        for index in range(start, len(self.tokens)):
            text = self.texts[index]
            if text in _OPENING:
                stack.append(text)
            elif text in _CLOSERS:
                opened = stack.pop() if stack else "nothing"
                if CLOSING.get(opened, "until" if opened == "repeat" else "end") != text:
                    raise self.error(index, f"'{text}' closes {opened}")
            yield index, stack

    def is_table_key(self, index: int, stack: list[str]) -> bool:
        """Whether the name at ``index``, inside ``stack``, is the key in ``{ key = … }``."""
        return (
            bool(stack) and stack[-1] == "{" and self.text(index + 1) == "=" and self.text(index - 1) in ("{", ",", ";")
        )

    def after_suffixes(self, index: int) -> int:
        """Step over ``.name``, ``:name``, ``[…]``, ``(…)``, ``{…}`` and string arguments."""
        while True:
            text = self.text(index)
            if text in (".", ":"):
                index += 2
            elif text in ("(", "{", "["):
                index = self.after(index)
            elif text == '""':
                index += 1
            else:
                return index

    def values(self, index: int) -> list[tuple[int, int]]:
        """The (start, end) of each expression in the comma-separated list that begins at ``index``.

        It ends where a statement begins: a name or a keyword that no operator, comma or dot leads to."""
        found, start, depth, at = [], index, 0, index
        for at, stack in self.nesting(index):
            if depth == 0 and self.text(at) == ",":
                found.append((start, at))
                start = at + 1
            elif depth == 0 and at > start and self.text(at - 1) not in _GOES_ON:
                if self.is_name(at) or self.text(at) in _STATEMENT:
                    break
            depth = len(stack)
        if start == at:
            raise self.error(index, f"expected an expression, found '{self.text(at)}'")
        return [*found, (start, at)]

    def name_list(self, index: int) -> list[int]:
        """The indexes of the names in ``a, b, c`` that begins at ``index``."""
        found = []
        while self.is_name(index):
            found.append(index)
            if self.text(index + 1) != ",":
                break
            index += 2
        return found

    def declared_by(self, index: int) -> list[int]:
        """The indexes of the local names which the keyword at ``index`` declares (local, for, function)."""
        text = self.text(index)
        if text == "local" and self.text(index + 1) == "function":
            return [index + 2]
        if text in ("local", "for"):
            return self.name_list(index + 1)
        if text == "function":
            opening = index + 1
            while self.text(opening) not in ("(", ""):
                opening += 1
            return self.name_list(opening + 1)
        return []

    def assignment_after(self, index: int) -> bool:
        """Whether ``index``, just after a target, goes on as an assignment: ``= …`` or ``, b.c = …``."""
        while self.text(index) == "," and self.is_name(index + 1):
            index = self.after_suffixes(index + 2)
        return self.text(index) == "="
