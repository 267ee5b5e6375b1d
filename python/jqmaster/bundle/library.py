"""Lays out the function library: the operations of a job's life, from the same modules as their scripts.

A library's functions stay: what a script defines anew at each call is defined once here, whole module by whole module,
when an operation that needs it is first called. A module's table that is written to (``local open = {}``) lives for one
call, as it does in a script, unless the comment above says ``---@kept``. One that had few entries is emptied and used
again. Those that say ``---@drained`` are looked at only after a call that failed. Keys are those of the call's
namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jqmaster.bundle.script import FRAME, inlined
from jqmaster.bundle.source import Item, Mention, Module, Piece, ScriptBody

KEYS = "base.keys"  # the module whose values depend on the namespace
LASTS = "base.memory.LASTS"  # whether what is marked ``---@kept`` outlives a call

_FLAGS = {"write": "", "drain": '"allow-oom"', "read": '"no-writes"'}

_HEAD = """\
local definitions, modules, operations, input, state, drained, namespaces = {}, {}, {}, {}, {}, {}, {}
local few = 8
local count, current, current_keys = 0
-- Where modules look for keys are those that were asked for since the namespace changed: few, so that it changes
-- at little cost where several take turns.
local asked = {}
modules["base.keys"] = asked
local function module(name)
  local M = modules[name]
  if not M then
    M = {}
    modules[name] = M
    definitions[name](input, state, drained, module, M)
  end
  return M
end
local function itself(problem)
  return problem
end
local function use(namespace)
  local keys = namespaces[namespace]
  if not keys then
    if count == 0 then
      -- Redis keeps the collector going all the time. At an eighth of its pace it costs less, and what lies
      -- about is a megabyte more at most.
      pcall(function() collectgarbage("setstepmul", 25) end)
      -- While a library is loaded it has no globals, such as setmetatable.
      setmetatable(asked, { __index = function(_, name)
        asked[name] = current_keys[name]
        return asked[name]
      end })
      local made_when_needed = { __index = function(tables, name)
        tables[name] = {}
        return tables[name]
      end }
      setmetatable(state, made_when_needed)
      setmetatable(drained, made_when_needed)
    elseif count % 64 == 0 then
      namespaces = {}
    end
    keys, count = {}, count + 1
    definitions["base.keys"](input, state, drained, module, keys)
    namespaces[namespace] = keys
  end
  for name in next, asked do
    asked[name] = nil
  end
  current, current_keys = namespace, keys
end
local function run(name, KEYS, ARGV)
  input.KEYS, input.ARGV = KEYS, ARGV
  if KEYS[1] ~= current then
    use(KEYS[1] or "")
  end
  local next = next
  if input.failed then
    for table in next, drained do
      drained[table] = {}
    end
    for table in next, state do
      state[table] = {}
    end
  end
  for table, content in next, state do
    local left = few
    for key in next, content do
      content[key], left = nil, left - 1
      if left < 0 then
        state[table] = {}
        break
      end
    end
  end
  local operation = operations[name]
  if not operation then
    operation = definitions[name](input, state, drained, module)
    operations[name] = operation
  end
"""


def link_library(scripts: Sequence[ScriptBody]) -> Callable[[str], str]:
    """What gives the library's source for a name. Raises BuildError."""
    texts = {script.name: _operation(script) for script in scripts}
    for module in sorted(_reached(scripts), key=lambda module: module.name):
        texts[module.name] = _module(module)
    frame = FRAME % ("operation", "itself", "input.failed = not ok\n")
    source = f"{_HEAD}{frame}end\n" + "".join(f'definitions["{name}"] = {text}' for name, text in texts.items())

    def named(name: str) -> str:
        functions = [
            f'redis.register_function{{function_name="{name}_{script.name}", '
            f"flags={{{_FLAGS[script.flags]}}}, callback=function(KEYS, ARGV)\n"
            f'return run("{script.name}", KEYS, ARGV)\nend}}\n'
            for script in scripts
        ]
        return f"#!lua name={name}\n{source}{''.join(functions)}"

    return named


def _reached(scripts: Sequence[ScriptBody]) -> set[Module]:
    found: set[Module] = set()
    waiting = [module for script in scripts for module in script.module.aliases.values()]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += module.aliases.values()
    return found


def _operation(script: ScriptBody) -> str:
    fetched: dict[str, str] = {}
    body = _render(script.pieces, script.module, fetched)
    return _definition(fetched, ["return function()", body, "end"])


def _module(module: Module) -> str:
    fetched: dict[str, str] = {}
    lines: list[str] = []
    for item in module.items.values():
        if not item.is_state:
            name = f"M.{item.name}" if item.is_public else item.name
            text = _render(item.pieces, module, fetched)
            start = "" if item.is_public else "local "
            lines.append(f"{start}function {name}{text}" if item.is_function else f"{start}{name} = {text}")
    return _definition(fetched, lines)


def _definition(fetched: dict[str, str], lines: list[str]) -> str:
    found = [f"local {name} = {text}" for name, text in fetched.items()]
    return "\n".join(["function(INPUT, STATE, DRAINED, MODULE, M)", *found, *lines, "end"]) + "\n"


def _render(pieces: Iterable[Piece], module: Module, fetched: dict[str, str]) -> str:
    """The text of pieces. ``fetched`` gets locals for what they use of other modules: it is looked up once."""
    out: list[str] = []
    for piece in pieces:
        if isinstance(piece, Mention):
            text = "true" if str(piece.item) == LASTS else inlined(piece) or _place(piece.item, module, fetched)
        elif piece.text in ("KEYS", "ARGV"):
            text = f"INPUT.{piece.text}"
        else:
            text = piece.text
        out.append(piece.space + text)
    return "".join(out).lstrip()


def _place(item: Item, module: Module, fetched: dict[str, str]) -> str:
    alias = item.module.name.replace(".", "_")
    if item.is_state:
        return f"{'DRAINED' if item.is_drained else 'STATE'}.{alias}_{item.name}"
    if item.module is module:
        return f"M.{item.name}" if item.is_public else item.name
    if item.module.name == KEYS:
        fetched[alias] = f'MODULE("{KEYS}")'
        return f"{alias}.{item.name}"
    fetched[f"{alias}_{item.name}"] = f'MODULE("{item.module.name}").{item.name}'
    return f"{alias}_{item.name}"
