"""Lays out the function library: the operations of a job's life, from the same modules as their scripts.

A library's functions stay: what a script defines anew at each call is defined once here. Its sources are held
as strings, and each module is compiled when one of its functions is first needed, so that rare modules cost
the collector next to nothing. A module's table that is written to (``local open = {}``) lives for one call,
as it does in a script, unless the comment above says ``---@kept``: what is empty at the end of a call is
used again. Those of lazy modules, or marked ``---@rare``, are made when they are needed; behind a call that
needed one all tables are new, as they may have grown. Keys are those of the call's namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jqmaster.bundle.link import Literals
from jqmaster.bundle.module import Item, ModuleReference, Piece, ScriptBody
from jqmaster.bundle.tokens import BuildError, Token

KEYS = "base.keys"  # the module whose values depend on the namespace
LASTS = ("base.memory", "LASTS")  # whether what is marked ``---@kept`` outlives a call

_FLAGS = {"write": "", "drain": '"allow-oom"', "read": '"no-writes"'}
_GLOBALS = frozenset(
    "assert error getmetatable ipairs next pairs pcall rawget rawset select setmetatable tonumber tostring "
    "type unpack".split()
)
_GIVEN = "INPUT, STATE, RARE, MODULES"  # what each chunk is called with
_TABLES = frozenset("string table math struct cmsgpack bit redis".split())

_HEAD = """\
local sources = {}
local input, state, rare, modules, operations, namespaces = {}, {}, {}, {}, {}, {}
local count, current, current_keys, next = 0
-- Where modules look for keys are those that were asked for since the namespace changed: few, so that it changes
-- at little cost where several take turns.
local asked = { __index = function(keys, name)
  keys[name] = current_keys[name]
  return keys[name]
end }
local function compile(name)
  return assert(loadstring(sources[name], "@" .. name))
end
-- A module's table fills itself when it is first looked into.
local function fill(name)
  return { __index = function(module, field)
    setmetatable(module, nil)
    compile(name)(input, state, rare, modules, module)
    return module[field]
  end }
end
local function use(namespace)
  local keys = namespaces[namespace]
  if not keys then
    if count == 0 then
      next = _G["next"] -- there are no globals while a library is loaded
      -- Redis keeps the collector going all the time. At a quarter of its pace it costs less, and what lies
      -- about stays as little.
      pcall(function() _G["collectgarbage"]("setstepmul", 50) end)
      setmetatable(modules, { __index = function(_, name)
        modules[name] = setmetatable({}, fill(name))
        return modules[name]
      end })
      setmetatable(rare, { __index = function(_, name)
        local fresh = {}
        rare[name] = fresh
        return fresh
      end })
      modules["base.keys"], rare[1] = setmetatable({}, asked), {}
    elseif count % 64 == 0 then
      namespaces = {}
    end
    keys, count = {}, count + 1
    compile("base.keys")(input, state, rare, modules, keys)
    namespaces[namespace] = keys
  end
  for name in next, modules["base.keys"] do
    modules["base.keys"][name] = nil
  end
  current, current_keys = namespace, keys
end
local function run(name, KEYS, ARGV)
  input.KEYS, input.ARGV = KEYS, ARGV
  if KEYS[1] ~= current then
    use(KEYS[1] or "")
  end
  if next(rare) then
    for name in next, rare do
      rare[name] = nil
    end
    %anew
  else
    %left
  end
  local operation = operations[name]
  if not operation then
    operation = compile(name)(input, state, rare, modules)
    operations[name] = operation
  end
  return operation(KEYS, ARGV)
end
"""


def link_library(bodies: Sequence[ScriptBody]) -> Callable[[str], str]:
    """What gives the library's source for a name. Raises BuildError."""
    chunks = _Chunks()
    for body in bodies:
        chunks.operation(body)
    sources = [f"sources[{_quoted(name)}] = {_quoted(text)}\n" for name, text in chunks.write().items()]
    anew = "\n".join(f"state.{name} = {{}}" for name in chunks.states)
    left = "\n".join(f"if next(state.{name}) then state.{name} = {{}} end" for name in chunks.states)
    source = _HEAD.replace("%anew", anew).replace("%left", left) + "".join(sources)

    def named(name: str) -> str:
        functions = [
            f"redis.register_function{{function_name={_quoted(f'{name}_{body.name}')}, "
            f"flags={{{_FLAGS[body.flags]}}}, callback=function(KEYS, ARGV)\n"
            f"return run({_quoted(body.name)}, KEYS, ARGV)\nend}}\n"
            for body in bodies
        ]
        return f"#!lua name={name}\n{source}{''.join(functions)}"

    return named


def _quoted(text: str) -> str:
    """A Lua string of any text."""
    level = ""
    while f"]{level}]" in text or text.endswith(f"]{level}"):
        level += "="
    return f"[{level}[\n{text}]{level}]" if "\n" in text else f'"{text}"'


class _Chunks(Literals):
    """Collects what operations reach, and writes a chunk for each module and operation."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[ScriptBody] = []
        self.reached: dict[str, dict[Item, None]] = {}  # by module
        self.states: list[str] = []  # tables that each call needs

    def operation(self, body: ScriptBody) -> None:
        self.bodies.append(body)
        waiting = self.used(body.pieces)
        while waiting:
            item = waiting.pop()
            items = self.reached.setdefault(item.module, {})
            if item not in items:
                items[item] = None
                waiting += self.used(item.pieces)

    def used(self, pieces: Iterable[Piece]) -> list[Item]:
        """The items that ``pieces`` refer to, other than those whose value stands in their place."""
        references = [piece for piece in pieces if isinstance(piece, ModuleReference)]
        return [reference.item for reference in references if self.inlined(reference) is None]

    def literal(self, item: Item) -> str | None:
        if (item.module, item.name) == LASTS:
            return "true"
        return super().literal(item)

    def write(self) -> dict[str, str]:
        texts = {module: self.module(module, list(items)) for module, items in sorted(self.reached.items())}
        return texts | {body.name: _Chunk("", self).body(body.pieces) for body in self.bodies}

    def module(self, name: str, items: list[Item]) -> str:
        items.sort(key=lambda item: item.start)
        self.states += [_state_name(item) for item in items if is_state(item) and not item.rare]
        return _Chunk(name, self).definitions(items)


class _Chunk:
    """The text of one module or operation."""

    def __init__(self, module: str, chunks: _Chunks) -> None:
        self.name = module
        self.chunks = chunks
        self.fetched: dict[str, str] = {}  # locals at its head, and what each is
        self.defined: set[Item] = set()  # its functions, as far as it is written

    def definitions(self, items: list[Item]) -> str:
        return self.headed(f"local {_GIVEN}, M = ...", [self.define(item) for item in items])

    def body(self, pieces: list[Piece]) -> str:
        text = self.render(pieces, is_operation=True)
        return self.headed(f"local {_GIVEN} = ...", ["return function(KEYS, ARGV)", text, "end"])

    def headed(self, head: str, lines: list[str]) -> str:
        fetched = [f"local {name} = {text}" for name, text in sorted(self.fetched.items())]
        return "\n".join([head, *fetched, *lines]) + "\n"

    def define(self, item: Item) -> str:
        if is_state(item):
            return ""
        if item.function:
            self.defined.add(item)
        text = self.render(item.pieces).lstrip()
        if item.function:
            if not item.public:
                return f"local function {item.name}{text}"
            return f"local function M_{item.name}{text}\nM.{item.name} = M_{item.name}"
        self.refuse_namespaced(item)
        return f"M.{item.name} = {text}" if item.public else f"local {item.name} = {text}"

    def refuse_namespaced(self, item: Item) -> None:
        """A value is computed once, for all namespaces."""
        for piece in item.pieces:
            if isinstance(piece, ModuleReference):
                bound = piece.item.module == KEYS
            else:
                bound = piece.kind == "name" and piece.text in ("KEYS", "ARGV")
            if bound and self.name != KEYS:
                message = f"{item.label()} depends on the namespace: compute it in a function"
                raise BuildError(item.where.file, item.line, message)

    def render(self, pieces: list[Piece], *, is_operation: bool = False) -> str:
        out: list[str] = []
        skip = 0
        for index, piece in enumerate(pieces):
            if skip:
                skip -= 1
                continue
            text = self.reference(piece) if isinstance(piece, ModuleReference) else piece.text
            if isinstance(piece, Token) and piece.kind == "name":
                if text in _GIVEN.split(", "):
                    raise BuildError(self.name, piece.line, f"{text} is a name of the library's own")
                before, after = _text(pieces, index - 1), _text(pieces, index + 1)
                if before in (".", ":", "{", ",") and after == "=":
                    pass  # a field
                elif before in (".", ":"):
                    pass
                elif piece.text in ("KEYS", "ARGV") and not is_operation:
                    text = f"INPUT.{piece.text}"
                elif piece.text in _TABLES and after == ".":
                    text = f"{piece.text}_{_text(pieces, index + 2)}"
                    self.fetched[text] = f"{piece.text}.{_text(pieces, index + 2)}"
                    skip = 2
                elif piece.text in _GLOBALS:
                    self.fetched[text] = text
            out.append(piece.space + text)
        return "".join(out)

    def reference(self, reference: ModuleReference) -> str:
        literal = self.chunks.inlined(reference)
        if literal is not None:
            return literal
        item = reference.item
        if is_state(item):
            return f"{'RARE' if item.rare else 'STATE'}.{_state_name(item)}"
        if item.module == self.name:
            if not item.public:
                return item.name
            return f"M_{item.name}" if item in self.defined else f"M.{item.name}"
        module = f'MODULES["{item.module}"]'
        alias = item.module.replace(".", "__")
        if item.cold or item.rare or item.module == KEYS:
            self.fetched[alias] = module
            return f"{alias}.{item.name}"
        # What common calls need is looked up once.
        self.fetched[f"{alias}__{item.name}"] = f"{module}.{item.name}"
        return f"{alias}__{item.name}"


def is_state(item: Item) -> bool:
    """Whether it is a table that begins each call empty."""
    texts = ["" if isinstance(piece, ModuleReference) else piece.text for piece in item.pieces]
    return item.shared and not item.kept and texts == ["{", "}"]


def _state_name(item: Item) -> str:
    return f"{item.module.replace('.', '_')}_{item.name}"


def _text(pieces: list[Piece], index: int) -> str:
    piece = pieces[index] if 0 <= index < len(pieces) else None
    return piece.text if isinstance(piece, Token) else ""
