-- Compiles matchers (jqlua/limits/matcher.lua). Errors name the invalid place.
local check = require "jqlua.base.check"
local matcher = require "jqlua.limits.matcher"
local jobpath = require "jqlua.values.jobpath"
local msgpack = require "jqlua.values.msgpack"
local ordering = require "jqlua.values.ordering"

local M = {}

local MOST_BYTES = 65536
local MOST_LEVELS = 5 -- a compiled one is at most 11 lists deep; cmsgpack packs 16
local MOST_CONDITIONS = 100
local MOST_OPERANDS = 1000
local MOST_BRANCHES = 100

local SUBJECTS = "name queue priority tags argument argument.<path> any not"
local KINDS = {
  name = matcher.NAME, queue = matcher.QUEUE, priority = matcher.PRIORITY, tags = matcher.TAGS,
  argument = matcher.ARGUMENT,
}
local OPERATORS = "eq, ne, lt, le, gt, ge, in, glob, exists"
local CODES = {
  eq = matcher.EQ, ne = matcher.EQ, lt = matcher.LT, le = matcher.LE, gt = matcher.GT, ge = matcher.GE,
  glob = matcher.GLOB,
}

-- Reading values -----------------------------------------------------------------------------------------------------

--- A key as part of a place.
local function shown_key(key)
  local shown = key:sub(1, 80):gsub("[^\33-\57\59-\126]", "?")
  return shown .. (#key > 80 and "..." or "")
end

--- A value for an error message.
local function shown_value(blob, pos)
  local first, count, is_map = msgpack.open(blob, pos)
  if first and not is_map and count > 0 then
    return string.format("a list of %.0f", count)
  end
  local is_plain, value = pcall(cmsgpack.unpack, msgpack.raw(blob, pos))
  return is_plain and check.show(value) or "binary data or an ext value"
end

local function refuse(reader, place, expected, pos)
  check.refuse("INVALID " .. reader.path .. place .. ": expected " .. expected .. ", got "
    .. shown_value(reader.blob, pos))
end

local function refuse_beyond(reader, place, count, most, what)
  check.refuse(count > most
    and "INVALID " .. reader.path .. place .. ": expected at most " .. most .. " " .. what .. ", got more")
end

--- Calls for each key of a map with the position of its value.
---@param visit fun(key: string, pos: number)
local function each(reader, first, count, place, visit)
  local blob, known = reader.blob, {}
  for _ = 1, count do
    local text = msgpack.scalar(blob, first)
    if not ordering.is_text(text) then
      refuse(reader, place, "a map with text as keys", first)
    end
    local key = text:sub(2)
    check.refuse(known[key]
      and "INVALID " .. reader.path .. place .. "." .. shown_key(key) .. ": expected each key once, got it twice")
    known[key] = true
    local value = msgpack.skip(blob, first)
    visit(key, value)
    first = msgpack.skip(blob, value)
  end
end

--- What an operand must be.
---@param use string equal (also one of several), unequal, bound, glob
---@return string? expected nil if the scalar is valid
local function expected_of(kind, use, scalar)
  local is_text, number = ordering.is_text(scalar), ordering.to_number(scalar)
  if use == "glob" then
    return not is_text and "text, a pattern" or nil
  elseif kind == matcher.ARGUMENT then
    if use == "bound" then
      return not (is_text or number) and "a number or text" or nil
    end
    return not scalar and "a scalar: nil, a boolean, a number but NaN, text, binary data or ext" or nil
  elseif kind == matcher.PRIORITY then
    if use == "equal" then
      -- Here -0 is 0, as it is to all that compares.
      local is_fit = check.is_integer(number and number + 0, -2147483648, 2147483647)
      return not is_fit and "an integer from -2147483648 to 2147483647" or nil
    end
    return not number and "a number" or nil
  elseif use ~= "equal" then
    return not is_text and "text" or nil
  elseif kind == matcher.QUEUE then
    return not (is_text and check.is_queue(scalar:sub(2))) and check.QUEUE or nil
  end
  return not (is_text and check.is_name(scalar:sub(2))) and check.NAME or nil
end

--- Reads one operand.
---@return number|string scalar
local function read_scalar(reader, kind, use, pos, place)
  reader.operands = reader.operands + 1
  refuse_beyond(reader, "", reader.operands, MOST_OPERANDS, "operands")
  local scalar = msgpack.scalar(reader.blob, pos)
  local expected = expected_of(kind, use, scalar)
  if expected then
    refuse(reader, place, expected, pos)
  end
  return scalar
end

--- Whether a scalar, not given to an operator, is a pattern.
local function is_pattern(reader, kind, pos)
  if kind == matcher.NAME or kind == matcher.QUEUE then
    local scalar = msgpack.scalar(reader.blob, pos)
    return ordering.is_text(scalar) and scalar:find("*", 1, true)
  end
end

--- Reads a list of operands.
---@param with_patterns boolean
---@return table<string|number, true> set of scalars
---@return string[] patterns
local function read_list(reader, kind, pos, place, with_patterns)
  local first, count, is_map = msgpack.open(reader.blob, pos)
  if not first or is_map or count < 1 or count > MOST_OPERANDS then
    refuse(reader, place, "a list of 1 to " .. MOST_OPERANDS .. " scalars", pos)
  end
  local set, patterns = {}, {}
  for i = 0, count - 1 do
    local use = with_patterns and is_pattern(reader, kind, first) and "glob" or "equal"
    local scalar = read_scalar(reader, kind, use, first, place .. "[" .. i .. "]")
    if use == "glob" then
      patterns[#patterns + 1] = scalar:sub(2)
    else
      set[scalar] = true
    end
    first = msgpack.skip(reader.blob, first)
  end
  return set, patterns
end

-- Compiling conditions -----------------------------------------------------------------------------------------------

--- A condition that is no map: equal to a scalar, to one of several, or fitting a pattern.
---@return table node
local function read_plain(reader, kind, path, pos, place)
  if not msgpack.open(reader.blob, pos) then
    if is_pattern(reader, kind, pos) then
      return { kind, path, matcher.GLOB, read_scalar(reader, kind, "glob", pos, place):sub(2) }
    end
    return { kind, path, matcher.EQ, read_scalar(reader, kind, "equal", pos, place) }
  end
  local set, patterns = read_list(reader, kind, pos, place, true)
  local node = { kind, path, matcher.IN, set }
  if not patterns[1] then
    return node
  end
  node = { matcher.ANY, node }
  for _, pattern in ipairs(patterns) do
    node[#node + 1] = { kind, path, matcher.GLOB, pattern }
  end
  return node
end

--- Reads an operator and its operand.
---@return number operator
---@return any operand
---@return boolean? is_denied whether the value must not fulfil it, or be missing
local function read_operator(reader, kind, name, pos, place)
  if name == "in" then
    return matcher.IN, (read_list(reader, kind, pos, place, false))
  elseif name == "exists" then
    local text = msgpack.canonical(reader.blob, pos)
    if text ~= "t" and text ~= "f" then
      refuse(reader, place, "true or false", pos)
    end
    return matcher.EXISTS, true, text == "f"
  end
  -- They are too short for suggestions.
  check.refuse(not CODES[name]
    and "INVALID " .. reader.path .. place .. ": unknown operator, expected one of " .. OPERATORS)
  local use = name == "eq" and "equal" or name == "ne" and "unequal" or name == "glob" and "glob" or "bound"
  local operand = read_scalar(reader, kind, use, pos, place)
  return CODES[name], name == "glob" and operand:sub(2) or operand, name == "ne"
end

--- Reads one condition.
---@param path table|string|false of an argument, compiled
---@param add fun(node: table)
local function read_condition(reader, kind, path, pos, place, add)
  local first, count, is_map = msgpack.open(reader.blob, pos)
  if not is_map then
    return add(read_plain(reader, kind, path, pos, place))
  elseif count == 0 then
    refuse(reader, place, "at least one of the operators " .. OPERATORS, pos)
  end
  local together = { kind, path }
  each(reader, first, count, place, function(name, at)
    local operator, operand, is_denied = read_operator(reader, kind, name, at, place .. "." .. shown_key(name))
    if is_denied then
      add({ matcher.NOT, { kind, path, operator, operand } })
    else
      together[#together + 1], together[#together + 2] = operator, operand
    end
  end)
  if together[3] then
    add(together)
  end
end

---@param add fun(node: table)
local function read_leaf(reader, key, pos, place, add)
  reader.conditions = reader.conditions + 1
  refuse_beyond(reader, "", reader.conditions, MOST_CONDITIONS, "conditions")
  local kind, path = KINDS[key], false
  if key:sub(1, 9) == "argument." then
    local segments, expected = jobpath.split(key)
    check.refuse(not segments and "INVALID " .. reader.path .. place .. "." .. shown_key(key) .. ": expected "
      .. (expected or ""))
    path, kind = jobpath.compile(segments), matcher.ARGUMENT
    path = #path == 1 and path[1] or path
  end
  check.refuse(not kind and check.unknown(reader.path .. place, key, SUBJECTS))
  read_condition(reader, kind, path, pos, place .. "." .. shown_key(key), add)
end

-- Reading matchers ---------------------------------------------------------------------------------------------------

--- Reads a matcher: conditions that must all hold.
---@param kind number of the node that it becomes: ALL or NOT
---@return table node
local function read_matcher(reader, pos, place, level, kind)
  local blob = reader.blob
  local first, count, is_map = msgpack.open(blob, pos)
  if not is_map or count == 0 then
    refuse(reader, place, "a map of at least one condition", pos)
  end
  refuse_beyond(reader, place, level, MOST_LEVELS, "levels of any and not")
  local nodes = { kind }
  local function add(node)
    nodes[#nodes + 1] = node
  end
  each(reader, first, count, place, function(key, at)
    if key == "not" then
      add(read_matcher(reader, at, place .. ".not", level + 1, matcher.NOT))
    elseif key == "any" then
      local branch, branches, is_other = msgpack.open(blob, at)
      if not branch or is_other or branches < 1 or branches > MOST_BRANCHES then
        refuse(reader, place .. ".any", "a list of 1 to " .. MOST_BRANCHES .. " matchers", at)
      end
      local any = { matcher.ANY }
      for j = 1, branches do
        any[j + 1] = read_matcher(reader, branch, place .. ".any[" .. j - 1 .. "]", level + 1, matcher.ALL)
        branch = msgpack.skip(blob, branch)
      end
      add(any)
    else
      read_leaf(reader, key, at, place, add)
    end
  end)
  return nodes
end

--- Compiles a matcher; refuses the call if it is wrong.
---@param blob string MessagePack map
---@param path? string of it in errors; default: match
---@return table node cmsgpack packs it as it is
function M.compile(blob, path)
  path = path or "match"
  check.refuse(#blob == 0 and "INVALID " .. path .. ": expected one MessagePack map, got no bytes")
  check.refuse(#blob > MOST_BYTES
    and "INVALID " .. path .. ": expected at most " .. MOST_BYTES .. " bytes, got " .. #blob)
  check.refuse(not msgpack.is_whole(blob)
    and "INVALID " .. path .. ": expected one whole MessagePack map, got invalid bytes, or more than one value")
  return read_matcher({ blob = blob, path = path, conditions = 0, operands = 0 }, 1, "", 1, matcher.ALL)
end

return M
