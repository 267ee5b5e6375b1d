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
# What Redis is told: ``write`` is refused whole when Redis is out of memory; ``drain`` runs all the same, so that a
# full system can be emptied; ``read`` may run on replicas.
FLAGS = {"write": "", "drain": "allow-oom", "read": "no-writes"}

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
# A string; what Lua or Redis has and many calls use.
_BUILT_IN = re.compile(
    rf"{_STRING} | (?<![\w.:]) ((?:math|redis|string|struct)\.\w+ | (?:next|tonumber|type|unpack)(?=[(,]))",
    re.DOTALL | re.VERBOSE,
)

# What check.refuse raises is the reply. pcall would give the text of an error alone; assert returns what it is given.
_FRAME = """\
local ok, reply = xpcall(%s, assert)
if ok then
return reply
end
local is_refusal = type(reply) == "table" and reply.is_refusal
if not is_refusal or reply.has_writes then
%send
if is_refusal then
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


def reached_by(scripts: Iterable[Module]) -> dict[Item, None]:
    """The items that they need."""
    found: dict[Item, None] = {}
    waiting = [part for script in scripts for part in script.parts if isinstance(part, Item)]
    while waiting:
        item = waiting.pop()
        if item not in found:
            found[item] = None
            waiting += item.uses
    return found


# -- scripts ------------------------------------------------------------------------------------------------------
#
# Redis runs a script's whole chunk at every call: each function defined costs some hundred instructions, each local of
# the chunk that it uses some more. Hence a chunk has one table, which holds all that functions use of one another. What
# the plain life of a job needs (`common`, labels of items) is defined first, values made of others right behind it, the
# rest when it is first looked for.


def link_script(script: Module, common: Container[str] = ()) -> str:
    """The chunk, but for its first line."""
    reached = reached_by([script])
    first = [item for item in reached if str(item) in common and (item.is_function or not item.uses)]
    soon = [item for item in reached if str(item) in common and item not in first]
    rest = [*soon, *(item for item in reached if str(item) not in common)]
    places = {item: f"F_[{n}]" for n, item in enumerate((*first, *rest), 1)}

    def render(parts: Iterable[str | Item]) -> str:
        return "".join(part if isinstance(part, str) else places[part] for part in parts)

    entries = ["function" * item.is_function + render(item.parts) for item in places]
    table = entries[: len(first)] + ["nil"] * len(soon)  # with room for those: to grow costs much
    if rest:
        choice = _choice(len(first) + 1, entries[len(first) :])
        table.append(f"__index = function(_, n)\nlocal v\n{choice}\nF_[n] = v\nreturn v\nend")
    defined = "local F_\nF_ = {\n" + ",\n".join(table) + "\n}\nsetmetatable(F_, F_)\n"
    defined += "".join(f"{places[item]} = {render(item.parts)}\n" for item in soon)
    return defined + _FRAME % (f"function()\n{render(script.parts)}\nend", "")


def _choice(first: int, entries: Sequence[str]) -> str:
    """Lua that sets `v` to the entry of ``n``, the first of them being that of ``first``."""
    if len(entries) == 1:
        return f"v = {entries[0]}"
    middle = len(entries) // 2
    low, high = _choice(first, entries[:middle]), _choice(first + middle, entries[middle:])
    return f"if n < {first + middle} then\n{low}\nelse\n{high}\nend"


# -- the library --------------------------------------------------------------------------------------------------
#
# What a script defines anew at each call is defined once.


_LIBRARY = """\
local F_, K_, S_ -- functions and values; keys of the namespace; tables that begin each call empty
local KEYS, ARGV, define_keys, namespaces, current
local definitions = {}
-- While a library is loaded it has no globals, such as setmetatable: so this waits for the first call.
local function start()
  F_, S_, namespaces = {}, {}, { n = 0 }
  setmetatable(S_, { __index = function(_, name)
    local content = {}
    S_[name] = content
    return content
  end })
  for _, define in ipairs(definitions) do
    define()
  end
  -- Redis keeps the collector going all the time. At an eighth of its pace it costs less, and what lies
  -- about is a megabyte more at most.
  pcall(function() collectgarbage("setstepmul", 25) end)
end
local function use(namespace)
  if not current or namespaces.n == 64 then
    start()
  end
  K_ = namespaces[namespace]
  if not K_ then
    K_ = {}
    define_keys()
    namespaces[namespace], namespaces.n = K_, namespaces.n + 1
  end
  current = namespace
end
local function run(name, keys, arguments)
  KEYS, ARGV = keys, arguments
  if not keys[1] then
    return redis.error_reply("INVALID KEYS: expected exactly two keys, <namespace> and <namespace>:meta")
  elseif keys[1] ~= current then
    use(keys[1])
  end
  for name in next, S_ do
    S_[name] = {}
  end
"""


def link_library(scripts: Sequence[Module]) -> str:
    """The library, but for its functions."""
    reached = reached_by(scripts)
    modules: dict[Module, None] = {}
    _put_in_order(scripts, modules)
    source = _LIBRARY + _FRAME % ("F_[name]", "current = nil\n") + "end\n"
    for module in modules:
        items = [item for item in module.items.values() if item in reached and not item.is_state]
        head = "function define_keys()" if module.name == KEYS else "definitions[#definitions + 1] = function()"
        source += f"{head}\n{_defined(module, items)}end\n"
    return source


def registered(name: str, flags: dict[str, str]) -> str:
    """Its functions, ``flags`` being those of operations, by name."""
    return "".join(
        f'redis.register_function{{function_name="{name}_{operation}", flags={{{FLAGS[of] and repr(FLAGS[of])}}}, '
        f'callback=function(KEYS, ARGV)\nreturn run("{operation}", KEYS, ARGV)\nend}}\n'
        for operation, of in flags.items()
    )


def _put_in_order(modules: Iterable[Module], found: dict[Module, None]) -> None:
    """Each behind those that it requires."""
    for module in modules:
        if module not in found:
            _put_in_order(module.requires.values(), found)
            found[module] = None


def _place(item: Item) -> str:
    """How it is called in the library: what is neither a key nor a table of one call is a local of each module."""
    if item.module.name == KEYS:
        return f"K_.{item.name}"
    label = item.module.name.replace(".", "_") + ("_" if item.is_public else "__") + item.name
    return f"S_.{label}" if item.is_state else label


def _defined(module: Module, items: Sequence[Item]) -> str:
    """Lua that fetches what a module uses of others, and makes its own for those behind it. Globals cost more
    to look up than locals."""

    def render(parts: Iterable[str | Item]) -> str:
        return "".join(part if isinstance(part, str) else _place(part) for part in parts)

    own = {item: name for item in items if "." not in (name := _place(item))}
    used = [
        part for parts in (module.parts, *(item.parts for item in items)) for part in parts if isinstance(part, Item)
    ]
    others = dict.fromkeys(name for item in used if item not in own and "." not in (name := _place(item)))
    text = "".join(f"local {name} = F_.{name}\n" for name in others)
    text += "".join(f"local {name}\n" for name in own.values())
    for item in items:
        text += f"function {_place(item)}" if item.is_function else f"{_place(item)} = "
        text += render(item.parts) + "\n"
    text += "".join(f"F_.{name} = {name}\n" for item, name in own.items() if item.is_public)
    if module.parts:
        text += f"function F_.{module.name}()\n{render(module.parts)}\nend\n"
    built_in = dict.fromkeys(match[1] for match in _BUILT_IN.finditer(text) if match[1])
    text = _BUILT_IN.sub(lambda match: match[1].replace(".", "_") if match[1] else match[0], text)
    return "".join(f"local {name.replace('.', '_')} = {name}\n" for name in built_in) + text
