"""From scripts/ and jqlua/ to what Redis loads: the chunk of each script, and the library of functions.

Every statement of a module begins in the first column and is one of these: ``local x = require "jqlua.x"``,
``local M = {}``, a function, a single value, ``return M``. No name hides another, as luacheck sees to.

In a script all begins anew with each call. In the library a module stays as it is, but for its tables that begin as
``{}``: these begin each call empty; those that begin as ``KEPT`` do not. After an error that is no refusal all of it is
defined anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field

KEYS = "base.keys"  # the module whose values depend on the namespace

_STRING = r""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | \[\[.*?\]\] """
_COMMENT = re.compile(rf"({_STRING}) | --\[\[.*?\]\] | --[^\n]*", re.DOTALL | re.VERBOSE)
# A string; the white space before a line; a name that is neither a field nor the key of a table, with a field of it.
_PART = re.compile(
    rf"{_STRING} | \n\s* | (?<![\w.:]) (?P<name>[A-Za-z_]\w*) (?:\.(?P<member>\w+))? (?!\w|\s*=[^=])",
    re.DOTALL | re.VERBOSE,
)
_STATEMENT = re.compile(r"^(?=local |function |M\.|return M)", re.MULTILINE)
_REQUIRE = re.compile(r'local (\w+) = require "jqlua\.([\w.]+)"\s*')
_ITEM = re.compile(
    r"(?:(?P<local>local )|M\.)(?P<name>\w+) = (?P<value>.*)"
    r"|(?P<local_function>local )?function (?:M\.)?(?P<function>\w+)(?P<body>\(.*)", re.DOTALL,
)  # fmt: skip
_LITERAL = re.compile(r'\(?"(?:\\.|[^"\\])*"\)?|true|false|[-\d(][-+*/^(). \dex]*')

# What check.refuse raises is the reply. pcall would give the text of an error alone.
_FRAME = """\
local ok, reply = xpcall(%s, %s)
local is_refusal = type(reply) == "table" and reply.is_refusal
if not ok and (not is_refusal or reply.has_writes) then
%send
if ok or is_refusal then
return reply
end
error(reply, 0)
"""


class BuildError(Exception):
    """Sources that cannot be bundled. The message begins with the module."""


@dataclass(eq=False, slots=True)
class Item:
    """One function or value of a module. ``parts``: its parameters and body, or its expression; in it the items that
    it uses. ``literal``: what stands for it everywhere, where it is a text or a number."""

    module: Module
    name: str
    is_public: bool
    is_function: bool
    text: str
    parts: list[str | Item] = field(default_factory=list)
    literal: str = ""

    @property
    def uses(self) -> list[Item]:
        return [part for part in self.parts if isinstance(part, Item)]

    @property
    def is_state(self) -> bool:
        """Whether it is a table that begins each call empty."""
        return self.text == "{}"

    def __str__(self) -> str:
        return f"{self.module.name}.{self.name}"


@dataclass(eq=False, slots=True)
class Module:
    """``requires``: modules by the names that it has for them; ``items``: by ``name``, or ``M.name``. A script's own
    statements are its ``parts``."""

    name: str
    requires: dict[str, Module] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    parts: list[str | Item] = field(default_factory=list)


Require = Callable[[str], Module]


def _statements(source: str) -> list[str]:
    return _STATEMENT.split(_COMMENT.sub(lambda match: match[1] or "", source))


def parse_module(name: str, source: str, require: Require) -> Module:
    """Raises BuildError."""
    module = Module(name)
    for statement in map(str.strip, _statements(source)):
        if required := _REQUIRE.fullmatch(statement):
            module.requires[required[1]] = require(required[2])
        elif statement not in ("", "local M = {}", "return M"):
            item = _item(module, statement)
            module.items[f"M.{item.name}" if item.is_public else item.name] = item
    for item in sorted(module.items.values(), key=lambda item: item.is_function):
        item.parts = ["{}"] if item.text == "KEPT" else _parts(item.text, module, item)
        text = "".join(part if isinstance(part, str) else "?" for part in item.parts)
        if not item.is_function and _LITERAL.fullmatch(text):
            item.literal = text if text.isalnum() else f"({text})"
    return module


def parse_script(name: str, source: str, require: Require, fields: str) -> Module:
    """``fields``: what stands for ``HEAD``. Raises BuildError."""
    module = Module(name)
    source = _COMMENT.sub(lambda match: match[1] or "", source)
    while required := _REQUIRE.match(source := source.strip()):
        module.requires[required[1]] = require(required[2])
        source = source[required.end() :]
    module.parts = _parts(re.sub(r"\bHEAD\b", lambda _: fields, source), module)
    return module


def _item(module: Module, statement: str) -> Item:
    match = _ITEM.fullmatch(statement)
    if match is None:
        first = statement.partition("\n")[0]
        raise BuildError(f"{module.name}: expected a function or a single value, got {first}")
    if name := match["function"]:
        return Item(module, name, not match["local_function"], True, match["body"])
    return Item(module, match["name"], not match["local"], False, match["value"])


def _parts(text: str, module: Module, owner: Item | None = None) -> list[str | Item]:
    """The text cut where it uses items, which stand between, but for literals; indentation is left out."""
    parts: list[str | Item] = []
    end = 0
    for match in _PART.finditer(text):
        item, rest = _used(module, match["name"], match["member"])
        if match[0][0] == "\n":
            rest = "\n"
        elif item is None or (item is owner and not item.is_function):  # ``local type = type``: the second is a global
            continue
        parts.append(text[end : match.start()])
        if item is not None:
            parts.append(item.literal or item)
        parts.append(rest)
        end = match.end()
    parts.append(text[end:])
    return [part for part in parts if part != ""]


def _used(module: Module, name: str | None, member: str | None) -> tuple[Item | None, str]:
    """The item that a name stands for, and what is left behind it."""
    if name is None:
        return None, ""
    if name == "M" or name in module.requires:
        other = module.requires.get(name, module)
        if f"M.{member}" not in other.items:
            raise BuildError(f"{module.name}: module jqlua.{other.name} has no '{member or ''}'")
        return other.items[f"M.{member}"], ""
    return module.items.get(name), f".{member}" if member else ""


# -- scripts ------------------------------------------------------------------------------------------------------
#
# Redis runs a script's whole chunk at every call: each function defined costs some hundred instructions, each local of
# the chunk that it uses some more. Hence a chunk has one table, which holds all that functions use of one another. What
# the plain life of a job needs (`common`, labels of items) is defined first, the rest when it is first looked for: the
# functions of a module that the script reaches, or another value.


def _group(item: Item) -> Module | Item:
    return item.module if item.is_function else item


def link_script(script: Module, common: Container[str] = (), group: Callable[[Item], Module | Item] = _group) -> str:
    """The chunk, but for its first line. ``group``: what is defined together."""
    reached = reached_by(script)
    first = [item for item in reached if str(item) in common and (item.is_function or not item.uses)]
    groups: dict[Module | Item, list[Item]] = {}
    for item in reached:
        if item not in first:
            groups.setdefault(group(item), []).append(item)
    places = {item: f"F_[{n}]" for n, item in enumerate(first, 1)}
    for n, (of, items) in enumerate(groups.items(), len(first) + 1):
        places |= {item: f"F_[{n}]" + (f"[{at}]" if of is not item else "") for at, item in enumerate(items, 1)}

    def render(parts: Iterable[str | Item]) -> str:
        return "".join(part if isinstance(part, str) else places[part] for part in parts)

    def defined(items: Iterable[Item]) -> str:
        return ",\n".join("function" * item.is_function + render(item.parts) for item in items)

    additions = [
        f"v = {defined(items)}" if of is items[0] else f"v = {{\n{defined(items)}\n}}" for of, items in groups.items()
    ]
    entries = [defined(first)] if first else []
    if additions:
        choice = _choice(len(first) + 1, additions)
        entries.append(f"__index = function(_, n)\nlocal v\n{choice}\nF_[n] = v\nreturn v\nend")
    table = "local F_\nF_ = {\n" + ",\n".join(entries) + "\n}\nsetmetatable(F_, F_)\n"
    frame = _FRAME % (f"function()\n{render(script.parts)}\nend", "function(problem) return problem end", "")
    return table + frame


def reached_by(script: Module) -> dict[Item, None]:
    """The items that it needs."""
    found: dict[Item, None] = {}
    waiting = [part for part in script.parts if isinstance(part, Item)]
    while waiting:
        item = waiting.pop()
        if item not in found:
            found[item] = None
            waiting += item.uses
    return found


def _choice(first: int, branches: Sequence[str]) -> str:
    """Lua that runs the branch of ``n``, the first of them being that of ``first``."""
    if len(branches) == 1:
        return branches[0]
    middle = len(branches) // 2
    low, high = _choice(first, branches[:middle]), _choice(first + middle, branches[middle:])
    return f"if n < {first + middle} then\n{low}\nelse\n{high}\nend"


# -- the library --------------------------------------------------------------------------------------------------
#
# What a script defines anew at each call is defined once: a module when an operation that needs it is first called.

_FLAGS = {"write": "", "drain": '"allow-oom"', "read": '"no-writes"'}

_HEAD = """\
local KEYS, ARGV
local definitions, modules, operations, STATE, namespaces = {}, {}, {}, {}, {}
local current, current_keys
-- Where modules look for keys are those that were asked for since the namespace changed: few, so that it changes
-- at little cost where several take turns.
local asked = {}
local function MODULE(name)
  local M = modules[name]
  if not M then
    M = {}
    modules[name] = M
    definitions[name](M)
  end
  return M
end
-- While a library is loaded it has no globals, such as setmetatable: so this waits for the first call.
local function start()
  modules, operations, STATE, namespaces, current = { ["base.keys"] = asked }, {}, {}, { n = 0 }, nil
  setmetatable(asked, { __index = function(_, name)
    asked[name] = current_keys[name]
    return asked[name]
  end })
  setmetatable(STATE, { __index = function(_, name)
    STATE[name] = {}
    return STATE[name]
  end })
  -- Redis keeps the collector going all the time. At an eighth of its pace it costs less, and what lies
  -- about is a megabyte more at most.
  pcall(function() collectgarbage("setstepmul", 25) end)
end
local function use(namespace)
  if not namespaces.n or namespaces.n == 64 then
    start()
  end
  local keys = namespaces[namespace]
  if not keys then
    keys = {}
    namespaces[namespace], namespaces.n = keys, namespaces.n + 1
    definitions["base.keys"](keys)
  end
  for name in next, asked do
    asked[name] = nil
  end
  current, current_keys = namespace, keys
end
local function itself(problem)
  return problem
end
local function run(name, keys, arguments)
  KEYS, ARGV = keys, arguments
  if not keys[1] then
    return redis.error_reply("INVALID KEYS: expected exactly two keys, <namespace> and <namespace>:meta")
  elseif keys[1] ~= current then
    use(keys[1])
  end
  for table, content in next, STATE do
    if next(content) ~= nil then
      STATE[table] = {}
    end
  end
  local operation = operations[name]
  if not operation then
    operation = definitions[name]()
    operations[name] = operation
  end
"""


def link_library(scripts: Sequence[Module]) -> str:
    """The library, but for its functions."""
    source = _HEAD + _FRAME % ("operation", "itself", "start()\n") + "end\n"
    for module in sorted(_modules(scripts), key=lambda module: module.name):
        lines = [_defined(item) for item in module.items.values() if not item.is_state]
        source += _definition(module, "M", [part for line in lines for part in (*line, "\n")])
    for script in scripts:
        source += _definition(script, "", ["return function()\n", *script.parts, "\nend\n"])
    return source


def registered(name: str, flags: dict[str, str]) -> str:
    """Its functions, ``flags`` being those of operations, by name."""
    return "".join(
        f'redis.register_function{{function_name="{name}_{operation}", flags={{{_FLAGS[of]}}}, '
        f'callback=function(KEYS, ARGV)\nreturn run("{operation}", KEYS, ARGV)\nend}}\n'
        for operation, of in flags.items()
    )


def _modules(scripts: Iterable[Module]) -> set[Module]:
    found: set[Module] = set()
    waiting = [module for script in scripts for module in script.requires.values()]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += module.requires.values()
    return found


def _defined(item: Item) -> list[str | Item]:
    """Its definition."""
    if item.is_state:
        return []
    name = f"M.{item.name}" if item.is_public else item.name
    local = "" if item.is_public else "local "
    return [f"{local}function {name}" if item.is_function else f"{local}{name} = ", *item.parts]


def _place(item: Item, module: Module | None = None) -> str:
    """How it is called, in its module or in another."""
    if item.is_state:
        return f"STATE.{str(item).replace('.', '_')}"
    if item.module is module:
        return f"M.{item.name}" if item.is_public else item.name
    alias = item.module.name.replace(".", "_")
    return f"{alias}{'.' if item.module.name == KEYS else '_'}{item.name}"


def _definition(module: Module, parameter: str, parts: Iterable[str | Item]) -> str:
    """What is of other modules is looked up once, but for keys."""
    fetched: dict[str, str] = {}
    body = ""
    for part in parts:
        if isinstance(part, str):
            body += part
            continue
        body += _place(part, module)
        if part.module is not module and part.module.name == KEYS:
            fetched[_place(part).partition(".")[0]] = f'MODULE("{KEYS}")'
        elif part.module is not module and not part.is_state:
            fetched[_place(part)] = f'MODULE("{part.module.name}").{part.name}'
    head = "".join(f"local {name} = {text}\n" for name, text in fetched.items())
    return f'definitions["{module.name}"] = function({parameter})\n{head}{body}end\n'
