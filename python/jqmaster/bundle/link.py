"""Lays out what Redis gets: the function library of all operations, and a script for each.

Both are modules, and operations, as functions that define them when they are first needed; of a script only what it
reaches. Its chunk runs anew at every call. A library's functions stay: what a script defines at each call is defined
once there. A module's table that is written to (``local open = {}``) lives for one call, as it does in a script, unless
the comment above says ``---@kept``. One that had few entries is emptied and used again, but for a call that wrote much
(``batch.large``). Those that say ``---@drained`` are looked at only after a call that failed. Keys are those of the
call's namespace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from jqmaster.bundle.source import BuildError, Item, Mention, Module, Piece, ScriptBody

KEYS = "base.keys"  # the module whose values depend on the namespace
LASTS = "base.memory.LASTS"  # whether what is marked ``---@kept`` outlives a call

_ARITHMETIC = frozenset("+ - * / % ^ ( )".split())
_LITERAL = re.compile(r"[\d(\"'[].*|true|false|nil", re.DOTALL)
_SUFFIXES = ("(", "{", "[", ".", ":")
# What check.refuse raises is the reply. pcall would give the text of an error alone.
FRAME = """\
local ok, reply = xpcall(operation, itself)
%sif ok or type(reply) == "table" and reply.is_refusal then
return reply
end
error(reply, 0)
"""
_MODULES = """\
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
"""
_SCRIPT = """\
local definitions, modules, input, state = {}, {}, { KEYS = KEYS, ARGV = ARGV }, {}
local drained, module = state
setmetatable(state, { __index = function(_, name)
  state[name] = {}
  return state[name]
end })
function module(name)
  local M = modules[name]
  if not M then
    M = setmetatable({}, { __index = function(M, key)
      setmetatable(M, nil)
      definitions[name](input, state, drained, module, M)
      return M[key]
    end })
    modules[name] = M
  end
  return M
end
local function itself(problem)
  return problem
end
"""
_FLAGS = {"write": "", "drain": '"allow-oom"', "read": '"no-writes"'}

_LIBRARY = """\
local definitions, modules, operations, input, state, drained, namespaces = {}, {}, {}, {}, {}, {}, {}
local few = 8
local count, current, current_keys = 0
-- Where modules look for keys are those that were asked for since the namespace changed: few, so that it changes
-- at little cost where several take turns.
local asked = {}
modules["base.keys"] = asked
"""
_LIBRARY += _MODULES
_LIBRARY += """\
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
  if input.failed or drained.base_batch_large[1] then
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
    texts = {script.name: _operation(script, lasts=True) for script in scripts}
    for module in sorted(_reached(scripts), key=lambda module: module.name):
        texts[module.name] = _module(module, module.items.values(), lasts=True)
    source = _LIBRARY + FRAME % "input.failed = not ok\n" + "end\n" + _definitions(texts)

    def named(name: str) -> str:
        functions = [
            f'redis.register_function{{function_name="{name}_{script.name}", '
            f"flags={{{_FLAGS[script.flags]}}}, callback=function(KEYS, ARGV)\n"
            f'return run("{script.name}", KEYS, ARGV)\nend}}\n'
            for script in scripts
        ]
        return f"#!lua name={name}\n{source}{''.join(functions)}"

    return named


def link_script(script: ScriptBody) -> str:
    """A script's chunk, without its first line. Raises BuildError."""
    reached: dict[Item, None] = {}
    for piece in script.pieces:
        _reach(piece, reached, [])
    texts = {}
    for module in dict.fromkeys(item.module for item in reached):
        texts[module.name] = _module(module, [item for item in module.items.values() if item in reached])
    texts[script.name] = _operation(script)
    call = f'local operation = definitions["{script.name}"](input, state, drained, module)\n'
    return _SCRIPT + _definitions(texts) + call + FRAME % ""


def _reach(piece: Piece, reached: dict[Item, None], path: list[Item]) -> None:
    """Note an item that is used, and those that it uses. Raises BuildError where items need each other."""
    if not isinstance(piece, Mention) or inlined(piece) is not None or piece.item in path[-1:]:
        return
    item = piece.item
    if item in path:
        circle = " -> ".join(map(str, [*path[path.index(item) :], item]))
        raise BuildError(item.module.file, item.line, f"items need each other: {circle}")
    if item not in reached:
        for used in item.pieces:
            _reach(used, reached, [*path, item])
        reached[item] = None


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


def _reached(scripts: Sequence[ScriptBody]) -> set[Module]:
    found: set[Module] = set()
    waiting = [module for script in scripts for module in script.module.aliases.values()]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += module.aliases.values()
    return found


def _operation(script: ScriptBody, *, lasts: bool = False) -> str:
    fetched: dict[str, str] = {}
    body = _render(script.pieces, script.module, fetched, lasts=lasts)
    return _definition(fetched, ["return function()", body, "end"])


def _module(module: Module, items: Iterable[Item], *, lasts: bool = False) -> str:
    fetched: dict[str, str] = {}
    lines: list[str] = []
    for item in items:
        if not item.is_state:
            name = f"M.{item.name}" if item.is_public else item.name
            text = _render(item.pieces, module, fetched, lasts=lasts)
            if not item.is_function:
                _check_value(item)
            start = "" if item.is_public else "local "
            lines.append(f"{start}function {name}{text}" if item.is_function else f"{start}{name} = {text}")
    return _definition(fetched, lines)


def _check_value(item: Item) -> None:
    """Raise BuildError for a value that is made of keys, which would be those of another call's namespace."""
    depth = 0  # of functions in it, which ask for keys when they are called
    for piece in item.pieces if item.module.name != KEYS else ():
        if isinstance(piece, Mention):
            if not depth and piece.item.module.name == KEYS:
                raise BuildError(
                    item.module.file, item.line, f"'{item.name}' depends on the namespace: make it a function"
                )
        elif piece.text in ("function", "if", "do", "end"):
            depth += -1 if piece.text == "end" else 1


def _definitions(texts: dict[str, str]) -> str:
    return "".join(f'definitions["{name}"] = {text}' for name, text in texts.items())


def _definition(fetched: dict[str, str], lines: list[str]) -> str:
    found = [f"local {name} = {text}" for name, text in fetched.items()]
    return "\n".join(["function(INPUT, STATE, DRAINED, MODULE, M)", *found, *lines, "end"]) + "\n"


def _render(pieces: Iterable[Piece], module: Module, fetched: dict[str, str], *, lasts: bool) -> str:
    """The text of pieces. ``fetched`` gets locals for what they use of other modules: it is looked up once."""
    out: list[str] = []
    for piece in pieces:
        if isinstance(piece, Mention):
            is_true = lasts and str(piece.item) == LASTS
            text = "true" if is_true else inlined(piece) or _place(piece.item, module, fetched, lasts)
        elif piece.text in ("KEYS", "ARGV"):
            text = f"INPUT.{piece.text}"
        else:
            text = piece.text
        out.append(piece.space + text)
    return "".join(out).lstrip()


def _place(item: Item, module: Module, fetched: dict[str, str], lasts: bool) -> str:
    alias = item.module.name.replace(".", "_")
    if item.is_state:
        return f"{'DRAINED' if item.is_drained else 'STATE'}.{alias}_{item.name}"
    if item.module is module:
        return f"M.{item.name}" if item.is_public else item.name
    if item.module.name == KEYS or not lasts:
        fetched[alias] = f'MODULE("{item.module.name}")'
        return f"{alias}.{item.name}"
    fetched[f"{alias}_{item.name}"] = f'MODULE("{item.module.name}").{item.name}'
    return f"{alias}_{item.name}"
