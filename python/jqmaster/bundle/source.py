"""Reads the Lua sources: a module becomes named items, a script a body, both with resolved references.

Every statement of a module begins in the first column and is one of these: ``local x = require "jqlua.x"``,
``local M = {}``, a function, a constant, ``return M``. So each item can stand alone. What luacheck refuses need not be
refused here: no name hides another, and none is used before it is defined.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from jqmaster.manifest.heads import comment_of, lua_fields

HEAD = "HEAD"  # in a script: the fields of its spec
_TOKEN = re.compile(
    r"""(?P<string>\[(?P<s>=*)\[.*?\](?P=s)\] | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
      | (?P<number>\.?\d(?:[eE][+-]|[\w.])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<op>\.\.\.|\.\.|[=~<>]=|[+*/%^\#<>=(){}\[\];:,.-])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_SPACE = re.compile(r"(?:\s+|--\[(=*)\[.*?\]\1\]|--(?!\[=*\[)[^\n]*)*", re.DOTALL)


class BuildError(Exception):
    """Sources that cannot be bundled. The message begins with ``file:line:``."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")


class Token(NamedTuple):
    kind: str  # name, string, number, op
    text: str
    line: int
    before: str  # white space and comments

    @property
    def space(self) -> str:
        """What separates it from the token before it: nothing, a blank or a newline."""
        return "\n" if "\n" in self.before else " " * bool(self.before)


@dataclass(eq=False, slots=True)
class Item:
    """One function or value of a module. ``pieces``: its parameters and body, or its expression."""

    module: Module
    name: str
    line: int
    is_function: bool
    is_public: bool  # on the module's table
    is_kept: bool  # a table that outlives a call, where that is possible (``---@kept``)
    is_drained: bool  # a table that is empty at the end of each call that succeeds (``---@drained``)
    pieces: list[Piece] = field(default_factory=list)

    @property
    def is_state(self) -> bool:
        """Whether it is a table that begins each call empty."""
        return not self.is_kept and [piece.text for piece in self.pieces if isinstance(piece, Token)] == ["{", "}"]

    def __str__(self) -> str:
        return f"{self.module.name}.{self.name}"


class Mention(NamedTuple):
    """A use of an item, in place of the tokens that named it."""

    item: Item
    space: str
    after: str  # the token behind it


Piece = Token | Mention


@dataclass(eq=False, slots=True)
class Module:
    name: str
    file: str
    aliases: dict[str, Module] = field(default_factory=dict)  # modules that it requires
    items: dict[tuple[bool, str], Item] = field(default_factory=dict)  # by whether they are public, and name


@dataclass(eq=False, slots=True)
class ScriptBody:
    """``flags``: write, drain or read; ``is_function``: it is in the function library, too."""

    name: str
    flags: str
    is_function: bool
    module: Module  # what it requires
    pieces: list[Piece]


Require = Callable[[str, str, int], Module]
"""The module of a name, for a file and line."""


def tokenize(source: str, file: str) -> list[Token]:
    """Raises BuildError at what is not Lua, such as an open string."""
    tokens: list[Token] = []
    position, line = 0, 1
    while True:
        space = _SPACE.match(source, position)
        assert space
        line += space[0].count("\n")
        position = space.end()
        if position == len(source):
            return tokens
        match = _TOKEN.match(source, position)
        if match is None:
            raise BuildError(file, line, f"not Lua: {source[position : position + 20]!r}")
        tokens.append(Token(str(match.lastgroup), match[0], line, space[0]))
        line += match[0].count("\n")
        position = match.end()


def parse_module(name: str, source: str, file: str, require: Require) -> Module:
    module = Module(name, file)
    bodies: list[tuple[Item, list[Token]]] = []
    for statement in statements(tokenize(source, file), file):
        texts = [token.text for token in statement]
        if required := required_by(statement, file, require):
            module.aliases[texts[1]] = required
        elif texts not in (["local", "M", "=", "{", "}"], ["return", "M"]):
            bodies.append(new_item(module, statement, texts))
    for item, body in bodies:
        item.pieces = resolve(body, module, item)
    return module


def statements(tokens: list[Token], file: str) -> list[list[Token]]:
    starts: list[int] = []
    for n, token in enumerate(tokens):
        if n > 0 and not token.before.endswith("\n"):
            continue
        if token.text in ("local", "function", "M", "return"):
            starts.append(n)
        elif token.text not in ("end", "}", ")", "]"):
            raise BuildError(file, token.line, f"'{token.text}' cannot begin a statement of a module")
    return [tokens[start:end] for start, end in pairwise([*starts, len(tokens)])]


def required_by(statement: list[Token], file: str, require: Require) -> Module | None:
    """The module that ``local x = require "jqlua.x"`` names; None for another statement."""
    texts = [token.text for token in statement[:5]]
    if texts[0::3] != ["local", "require"] or not texts[4].startswith('"jqlua.'):
        return None
    return require(texts[4][7:-1], file, statement[0].line)


def new_item(module: Module, statement: list[Token], texts: list[str]) -> tuple[Item, list[Token]]:
    """The item that a statement defines, and its body."""
    first = statement[0]
    match texts:
        case ["local", "function", name, "(", *rest] | ["function", "M", ".", name, "(", *rest]:
            is_function, rest = True, ["(", *rest]
        case ["local", name, "=", *rest] | ["M", ".", name, "=", *rest]:
            is_function = False
        case _:
            raise BuildError(module.file, first.line, "at the top level of a module stand functions and single values")
    is_kept, is_drained = "---@kept" in first.before, "---@drained" in first.before
    item = Item(module, name, first.line, is_function, texts[0] != "local", is_kept, is_drained)
    if module.items.setdefault((item.is_public, name), item) is not item:
        raise BuildError(module.file, first.line, f"'{name}' is defined twice")
    return item, statement[len(statement) - len(rest) :]


def resolve(tokens: list[Token], module: Module, owner: Item | None = None) -> list[Piece]:
    """The pieces of an item's body, or of statements of a script."""
    texts = ["", *(token.text for token in tokens), "", "", ""]
    pieces: list[Piece] = []
    skip = 0
    for n, token in enumerate(tokens, 1):
        if n < skip:
            continue
        item, skip = None, n + 1
        if token.text == "require":
            raise BuildError(module.file, token.line, 'require only as: local x = require "jqlua.x", at the head')
        is_field = texts[n - 1] in (".", ":") or (texts[n + 1] == "=" and texts[n - 1] in ("{", ","))
        if token.kind == "name" and not is_field:
            item, skip = named(module, texts[n : n + 3], token, n)
        if item is None or (
            item is owner and not item.is_function
        ):  # in ``local type = type`` the second is the global
            pieces.append(token)
            skip = n + 1
        elif texts[skip] == "=":
            raise BuildError(module.file, token.line, f"'{item.name}' is assigned to: keep state in fields of a table")
        else:
            pieces.append(Mention(item, token.space, texts[skip]))
    return pieces


def named(module: Module, texts: list[str], token: Token, n: int) -> tuple[Item | None, int]:
    """The item that a name and the two tokens behind it stand for, and the index behind."""
    own = module.items.get((False, texts[0]))
    if own or (texts[0] != "M" and texts[0] not in module.aliases):
        return own, n + 1
    other = module.aliases.get(texts[0], module)
    item = other.items.get((True, texts[2]))
    if texts[1] != "." or item is None:
        raise BuildError(module.file, token.line, f"module jqlua.{other.name} has no '{texts[2]}'")
    return item, n + 3


def fields_of(source: str, file: str) -> str:
    """The fields of a script's spec, as its head has them: a table of Lua, as of jqlua/base/fields.lua."""
    try:
        return lua_fields(comment_of(source))
    except ValueError as problem:
        raise BuildError(file, 1, str(problem)) from problem


def parse_script(name: str, source: str, file: str, require: Require) -> ScriptBody:
    """Parse one script. Its own statements stay as they are; only references to modules are resolved."""
    tokens = tokenize(source, file)
    heads = re.findall(r"(?m)^-- @flags +(write|drain|read)(, function)?$", tokens[0].before if tokens else "")
    if len(heads) != 1:
        raise BuildError(file, 1, "the head needs one line '-- @flags write', 'drain' or 'read'")
    module = Module(name, file)
    tokens = [token._replace(text=fields_of(source, file)) if token.text == HEAD else token for token in tokens]
    end = 0
    while required := required_by(tokens[end : end + 5], file, require):
        module.aliases[tokens[end + 1].text] = required
        end += 5
    return ScriptBody(name, heads[0][0], bool(heads[0][1]), module, resolve(tokens[end:], module))
