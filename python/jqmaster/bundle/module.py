"""Reads the Lua sources: a module becomes named items, a script a body, both with resolved references.

A module keeps to a subset so that each of its items can stand alone: at the top level only ``local M = {}``,
``local x = require "jqlua.x"``, functions, constants, ``return M``. Everything else is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from jqmaster.bundle.tokens import BuildError, Cursor, Token, tokenize


@dataclass(eq=False, slots=True)
class Item:
    """One function or value of a module. ``pieces``: its parameters and body, or its expression."""

    module: str
    name: str
    function: bool
    where: Cursor
    statement: int  # first token of the statement that defines it
    start: int  # first token of the body
    end: int  # after its last token
    pieces: list[Piece] = field(default_factory=list)
    cold: bool = False  # a function that few calls need (``---@cold``, or of a lazy module)
    shared: bool = False  # module state: a table that is written to
    rare: bool = False  # state that few calls need (``---@rare``, or of a lazy module)
    public: bool = True  # on the module's table
    kept: bool = False  # state that outlives a call, where that is possible (``---@kept``)

    @property
    def line(self) -> int:
        return self.where.tokens[self.statement].line

    def label(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class ModuleReference:
    """A use of an item, in place of the tokens that named it."""

    item: Item
    space: str
    preceding: str  # the tokens around it: whether a literal may stand here
    following: str


Piece = Token | ModuleReference


@dataclass(eq=False, slots=True)
class Module:
    """A parsed module. ``locals`` holds its own local items, ``public`` those on the table it returns."""

    name: str
    cursor: Cursor
    table: str = ""
    aliases: dict[str, Module] = field(default_factory=dict)
    defined_at: dict[str, int] = field(default_factory=dict)  # token index behind each require and the table
    locals: dict[str, Item] = field(default_factory=dict)
    public: dict[str, Item] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class ScriptBody:
    """A parsed script. ``names``: all it uses; ``is_function``: it is in the function library, too."""

    name: str
    flags: str
    pieces: list[Piece]
    names: frozenset[str]
    is_function: bool = False


Require = Callable[[str, Cursor, int], Module]


def is_marked(token: Token, mark: str) -> bool:
    """Whether the comment above says ``---@<mark>``."""
    return any(comment.strip() == f"---@{mark}" for comment in token.comments)


def is_lazy(cursor: Cursor) -> bool:
    """Whether a comment at the head of a module says ``---@lazy``."""
    return is_marked(cursor.tokens[0], "lazy")


def require_at(cursor: Cursor, index: int, require: Require) -> tuple[str, Module, int] | None:
    """Read ``local x = require "jqlua.x"`` at ``index``: the alias, the module, the index behind it."""
    if [cursor.text(index + n) for n in (0, 2, 3)] != ["local", "=", "require"]:
        return None
    parenthesised = cursor.text(index + 4) == "("
    argument = index + 4 + parenthesised
    text = cursor.tokens[argument].text if cursor.text(argument) else ""
    named = re.fullmatch(r"[\"']jqlua\.(\w+(?:\.\w+)*)[\"']", text)
    if named is None:
        raise cursor.error(index, 'expected require "jqlua.<module>"')
    return cursor.text(index + 1), require(named[1], cursor, index), argument + 1 + parenthesised


def parse_module(name: str, source: str, file: str, require: Require) -> Module:
    """Parse one module. ``require`` gives the modules it names. Raises BuildError."""
    cursor = Cursor(tokenize(source, file), file)
    module = Module(name, cursor)
    returned = cursor.text(len(cursor.tokens) - 1)
    if cursor.text(len(cursor.tokens) - 2) != "return" or not cursor.is_name(len(cursor.tokens) - 1):
        raise cursor.error(len(cursor.tokens), "a module must end in 'return M', M being its table")
    module.table = returned
    items: list[Item] = []
    seen_table = False
    index = 0
    while index < len(cursor.tokens) - 2:
        required = require_at(cursor, index, require)
        if required:
            alias, target, after = required
            declare(module, alias, index)
            module.aliases[alias] = target
            module.defined_at[alias] = after
        elif [cursor.text(index + n) for n in range(5)] == ["local", returned, "=", "{", "}"]:
            declare(module, returned, index)
            seen_table, after = True, index + 5
            module.defined_at[returned] = after
        else:
            found, after = parse_item(module, index)
            items += found
        index = after
    if not seen_table:
        raise cursor.error(len(cursor.tokens), f"'local {returned} = {{}}' is missing")
    resolver = Resolver(cursor, module.aliases, module.defined_at, module)
    for item in items:
        item.pieces = resolver.resolve(item.start, item.end, item)
    return module


def declare(module: Module, name: str, index: int) -> None:
    """Refuse a second module-level local of the same name."""
    if name in module.locals or name in module.aliases:
        raise module.cursor.error(index, f"'{name}' is defined twice at the top level")


def parse_item(module: Module, index: int) -> tuple[list[Item], int]:
    """Parse the function or values that begin at ``index``; returns them and the index behind."""
    cursor, table = module.cursor, module.table
    texts = [cursor.text(index + n) for n in range(4)]
    public = texts[0] != "local"
    if texts[:2] == ["local", "function"] or texts[:3] == ["function", table, "."]:
        at = index + (3 if public else 2)
        if cursor.text(at + 1) != "(":
            raise cursor.error(index, f"expected 'function {table}.name(…)'")
        after = cursor.after(index if public else index + 1)
        items = [new_item(module, texts[at - index], index, at + 1, after, function=True)]
    else:
        items, after = parse_values(module, index, texts)
    for item in items:
        item.public = public
        known = module.public if public else module.locals
        if not public:
            declare(module, item.name, index)
        elif item.name in known:
            raise cursor.error(index, f"'{table}.{item.name}' is defined twice")
        known[item.name] = item
    return items, after


def parse_values(module: Module, index: int, texts: list[str]) -> tuple[list[Item], int]:
    cursor = module.cursor
    if texts[0] == "local" and cursor.is_name(index + 1):
        names = [cursor.text(n) for n in cursor.name_list(index + 1)]
        equals = index + 2 * len(names)
    elif texts[0] == module.table and texts[1] == "." and texts[3] == "=":
        names, equals = [texts[2]], index + 3
    else:
        raise cursor.error(
            index, f"'{texts[0]}' cannot stand at a module's top level: only require, functions, constants, return"
        )
    if cursor.text(equals) != "=":
        raise cursor.error(index, f"'{names[0]}' has no value")
    spans = cursor.values(equals + 1)
    if len(spans) != len(names):
        raise cursor.error(index, "one name, one value")
    items = []
    for name, (start, end) in zip(names, spans, strict=True):
        # A function as a value may call itself, like any other function.
        function = cursor.text(start) == "function" and cursor.after(start) == end
        items.append(new_item(module, name, index, start + function, end, function=function))
    return items, spans[-1][1]


def new_item(module: Module, name: str, statement: int, start: int, end: int, *, function: bool) -> Item:
    cursor, token = module.cursor, module.cursor.tokens[statement]
    item = Item(module.name, name, function, cursor, statement, start, end)
    item.cold = function and (is_marked(token, "cold") or is_lazy(cursor))
    item.rare = is_marked(token, "rare") or is_lazy(cursor)
    item.kept = is_marked(token, "kept")
    item.shared = cursor.texts[start:end] == ["{", "}"]
    return item


class Resolver:
    """Replaces names of items by references, and refuses what could change its meaning when built."""

    def __init__(
        self, cursor: Cursor, aliases: dict[str, Module], defined_at: dict[str, int], own: Module | None = None
    ) -> None:
        self.cursor = cursor
        self.defined_at = defined_at
        self.modules = aliases | ({own.table: own} if own else {})
        self.items = own.locals if own else {}

    def resolve(self, start: int, end: int, owner: Item | None = None) -> list[Piece]:
        cursor = self.cursor
        pieces: list[Piece] = []
        declared: set[int] = set()
        skip = start
        for index, stack in cursor.nesting(start):
            if index >= end:
                break
            declared.update(n for n in cursor.declared_by(index) if n < end)
            # A function item begins at its parameters, behind the keyword that declares them.
            if index == start and owner is not None and owner.function:
                declared.update(cursor.name_list(start + 1))
            if index < skip:
                continue
            piece, skip = self.piece(index, stack, declared, owner)
            pieces.append(piece)
        return pieces

    def piece(self, index: int, stack: list[str], declared: set[int], owner: Item | None) -> tuple[Piece, int]:
        """The piece at ``index`` and the index behind it."""
        cursor = self.cursor
        token = cursor.tokens[index]
        plain = token, index + 1
        if token.kind != "name" or cursor.text(index - 1) in (".", ":"):
            return plain
        if cursor.is_table_key(index, stack):
            return plain
        name = token.text
        if name == "require":
            raise cursor.error(index, 'require only as: local x = require "jqlua.x", at the top level')
        if name not in self.modules and name not in self.items:
            return plain
        if owner is not None and not owner.function and self.items.get(name) is owner:
            return plain  # In ``local type = type`` the second is the global.
        if index in declared:
            raise cursor.error(index, f"'{name}' shadows the module-level name '{name}': rename one of them")
        after = index + 1
        if name in self.items:
            item = self.items[name]
            self.refuse_early(name, index, item, owner)
        else:
            target = self.modules[name]
            if index < self.defined_at[name]:
                raise cursor.error(index, f"'{name}' is used before it is defined")
            if cursor.text(index + 1) != "." or not cursor.is_name(index + 2):
                raise cursor.error(index, f"'{name}' may only be used as {name}.<item>")
            name, after = cursor.text(index + 2), index + 3
            if name not in target.public:
                raise cursor.error(index, f"module jqlua.{target.name} has no '{name}'" + hint(name, target))
            item = target.public[name]
            if owner is not None and not owner.function and item.where is cursor:
                self.refuse_early(name, index, item, owner)
        if not (stack and stack[-1] == "{"):
            self.note_assignment(item, name, index, after)
        return ModuleReference(item, token.space, cursor.text(index - 1), cursor.text(after)), after

    def refuse_early(self, name: str, index: int, item: Item, owner: Item | None) -> None:
        """Refuse what plain Lua would read as nil, or as a global."""
        if owner is not None and item.statement >= owner.statement and not (item is owner and owner.function):
            raise self.cursor.error(index, f"'{name}' is used before it is defined (line {item.line})")

    def note_assignment(self, item: Item, name: str, index: int, after: int) -> None:
        """Refuse ``item = …``; after ``item.field = …`` the item is state, of which only one may be."""
        cursor = self.cursor
        if cursor.assignment_after(after):
            raise cursor.error(index, f"'{name}' is assigned to: keep state in fields of a table instead")
        suffixed = cursor.after_suffixes(after)
        if suffixed > after and not item.function and cursor.assignment_after(suffixed):
            item.shared = True


def hint(name: str, module: Module) -> str:
    """A suggestion for a misspelt item."""
    close = difflib.get_close_matches(name, module.public, 1)
    return f", did you mean '{close[0]}'?" if close else ""


def parse_script(name: str, source: str, file: str, require: Require) -> ScriptBody:
    """Parse one script. Its own statements stay as they are; only references to modules are resolved."""
    cursor = Cursor(tokenize(source, file), file)
    if not cursor.tokens:
        raise BuildError(file, 1, "the script is empty")
    found = [
        match[1]
        for comment in cursor.tokens[0].comments
        for match in re.finditer(r"(?m)^--+\s*@flags\s+(.*?)\s*$", comment)
    ]
    flags, _, form = (found[0] if len(found) == 1 else "").partition(", ")
    if flags not in ("write", "drain", "read") or form not in ("", "function"):
        raise BuildError(file, 1, "the head needs one line '-- @flags write', 'drain' or 'read'")
    aliases: dict[str, Module] = {}
    defined_at: dict[str, int] = {}
    statements: list[tuple[int, int]] = []  # spans that remain when the requires are gone
    start, returns = 0, False
    skip = 0
    for index, stack in cursor.nesting():
        text = cursor.text(index)
        opened = text in ("function", "do", "if", "repeat", "(", "{", "[")
        if len(stack) - opened or index < skip or text not in ("local", "return"):
            continue
        returns = returns or text == "return"
        required = require_at(cursor, index, require)
        if required:
            if required[0] in aliases:
                raise cursor.error(index, f"'{required[0]}' is defined twice at the top level")
            aliases[required[0]], defined_at[required[0]] = required[1], required[2]
            statements.append((start, index))
            start = skip = required[2]
    if not returns:
        raise cursor.error(len(cursor.tokens), "a script must end in a return")
    statements.append((start, len(cursor.tokens)))
    resolver = Resolver(cursor, aliases, defined_at)
    pieces = [piece for start, end in statements for piece in resolver.resolve(start, end)]
    return ScriptBody(name, flags, pieces, cursor.names, form == "function")
