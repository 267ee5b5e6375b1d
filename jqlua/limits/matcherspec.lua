-- Compiles matchers (jqlua/limits/matcher.lua). Errors name the invalid place.
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local matcher = require "jqlua.limits.matcher"
local jobpath = require "jqlua.values.jobpath"
local msgpack = require "jqlua.base.msgpack"

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

local function refuse(reader, place, expected, value)
  local shown = msgpack.is_nil(value) and "nil" or type(value) == "table" and value[1] ~= nil
    and "a list of " .. #value or check.show(value)
  check.refuse("INVALID " .. reader.path .. place .. ": expected " .. expected .. ", got " .. shown)
end

local function refuse_beyond(reader, place, count, most, what)
  check.refuse(count > most
    and "INVALID " .. reader.path .. place .. ": expected at most " .. most .. " " .. what .. ", got more")
end

local function is_map(value)
  return type(value) == "table" and value[1] == nil
end

--- Calls for each key of a map, in order.
---@param visit fun(key: string, value: any)
local function each(reader, map, place, visit)
  local sorted = {}
  for key in pairs(map) do
    if type(key) ~= "string" then
      refuse(reader, place, "a map with text as keys", key)
    end
    sorted[#sorted + 1] = key
  end
  table.sort(sorted)
  for _, key in ipairs(sorted) do
    visit(key, map[key])
  end
end

--- What an operand must be.
---@param use string equal (also one of several), unequal, bound, glob
---@return string? expected nil if the value is valid
local function expected_of(kind, use, value)
  local is_text = type(value) == "string" and not msgpack.is_nil(value)
  local is_number = type(value) == "number" and value == value
  if use == "glob" then
    return not is_text and "text, a pattern" or nil
  elseif kind == matcher.ARGUMENT then
    if use == "bound" then
      return not (is_text or is_number) and "a number or text" or nil
    end
    -- A large integer, which was rounded, would equal others.
    local is_exact = is_number and (math.abs(value) < 9007199254740992 or math.abs(value) > 18446744073709551616)
    return not (is_text or is_exact or type(value) == "boolean") and "a boolean, a number within 2^53, or text" or nil
  elseif kind == matcher.PRIORITY then
    if use == "equal" then
      -- Here -0 is 0, as it is to all that compares.
      local is_fit = is_number and check.is_integer(value + 0, -2147483648, 2147483647)
      return not is_fit and "an integer from -2147483648 to 2147483647" or nil
    end
    return not is_number and "a number" or nil
  elseif use ~= "equal" then
    return not is_text and "text" or nil
  elseif kind == matcher.QUEUE then
    return not check.is_queue(value) and check.QUEUE or nil
  end
  return not check.is_name(value) and check.NAME or nil
end

--- Reads one operand.
---@return number|string scalar
local function read_scalar(reader, kind, use, value, place)
  reader.operands = reader.operands + 1
  refuse_beyond(reader, "", reader.operands, MOST_OPERANDS, "operands")
  local expected = expected_of(kind, use, value)
  if expected then
    refuse(reader, place, expected, value)
  end
  return msgpack.scalar(value)
end

--- Whether a scalar, not given to an operator, is a pattern.
local function is_pattern(kind, value)
  return (kind == matcher.NAME or kind == matcher.QUEUE) and type(value) == "string" and glob.is_pattern(value)
end

--- Reads a list of operands.
---@param with_patterns boolean
---@return table<string|number, true> set of scalars
---@return string[] patterns
local function read_list(reader, kind, list, place, with_patterns)
  if not check.is_list(list, 1, MOST_OPERANDS) then
    refuse(reader, place, "a list of 1 to " .. MOST_OPERANDS .. " scalars", list)
  end
  local set, patterns = {}, {}
  for i, value in ipairs(list) do
    local use = with_patterns and is_pattern(kind, value) and "glob" or "equal"
    local scalar = read_scalar(reader, kind, use, value, place .. "[" .. i - 1 .. "]")
    if use == "glob" then
      patterns[#patterns + 1] = value
    else
      set[scalar] = true
    end
  end
  return set, patterns
end

-- Compiling conditions -----------------------------------------------------------------------------------------------

--- A condition that is no map: equal to a scalar, to one of several, or fitting a pattern.
---@return table node
local function read_plain(reader, kind, path, value, place)
  if type(value) ~= "table" then
    local use = is_pattern(kind, value) and "glob" or "equal"
    local scalar = read_scalar(reader, kind, use, value, place)
    return { kind, path, use == "glob" and matcher.GLOB or matcher.EQ, use == "glob" and value or scalar }
  end
  local set, patterns = read_list(reader, kind, value, place, true)
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
local function read_operator(reader, kind, name, value, place)
  if name == "in" then
    return matcher.IN, (read_list(reader, kind, value, place, false))
  elseif name == "exists" then
    if type(value) ~= "boolean" then
      refuse(reader, place, "true or false", value)
    end
    return matcher.EXISTS, true, not value
  end
  -- They are too short for suggestions.
  check.refuse(not CODES[name]
    and "INVALID " .. reader.path .. place .. ": unknown operator, expected one of " .. OPERATORS)
  local use = name == "eq" and "equal" or name == "ne" and "unequal" or name == "glob" and "glob" or "bound"
  local scalar = read_scalar(reader, kind, use, value, place)
  return CODES[name], name == "glob" and value or scalar, name == "ne"
end

--- Reads one condition.
---@param path table|string|false of an argument
---@param add fun(node: table)
local function read_condition(reader, kind, path, value, place, add)
  if not is_map(value) then
    return add(read_plain(reader, kind, path, value, place))
  elseif next(value) == nil then
    refuse(reader, place, "a scalar, a list of scalars, or at least one of the operators " .. OPERATORS, value)
  end
  local together = { kind, path }
  each(reader, value, place, function(name, given)
    local operator, operand, is_denied = read_operator(reader, kind, name, given, place .. "." .. shown_key(name))
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
local function read_leaf(reader, key, value, place, add)
  reader.conditions = reader.conditions + 1
  refuse_beyond(reader, "", reader.conditions, MOST_CONDITIONS, "conditions")
  local kind, path = KINDS[key], false
  if key:sub(1, 9) == "argument." then
    local segments, expected = jobpath.split(key)
    check.refuse(not segments and "INVALID " .. reader.path .. place .. "." .. shown_key(key) .. ": expected "
      .. (expected or ""))
    path, kind = #segments == 1 and segments[1] or segments, matcher.ARGUMENT
  end
  check.refuse(not kind and check.unknown(reader.path .. place, key, SUBJECTS))
  read_condition(reader, kind, path, value, place .. "." .. shown_key(key), add)
end

-- Reading matchers ---------------------------------------------------------------------------------------------------

--- Reads a matcher: conditions that must all hold.
---@param kind number of the node that it becomes: ALL or NOT
---@return table node
local function read_matcher(reader, map, place, level, kind)
  if not is_map(map) or next(map) == nil then
    refuse(reader, place, "a map of at least one condition", map)
  end
  refuse_beyond(reader, place, level, MOST_LEVELS, "levels of any and not")
  local nodes = { kind }
  local function add(node)
    nodes[#nodes + 1] = node
  end
  each(reader, map, place, function(key, value)
    if key == "not" then
      add(read_matcher(reader, value, place .. ".not", level + 1, matcher.NOT))
    elseif key == "any" then
      if not check.is_list(value, 1, MOST_BRANCHES) then
        refuse(reader, place .. ".any", "a list of 1 to " .. MOST_BRANCHES .. " matchers", value)
      end
      local any = { matcher.ANY }
      for j, branch in ipairs(value) do
        any[j + 1] = read_matcher(reader, branch, place .. ".any[" .. j - 1 .. "]", level + 1, matcher.ALL)
      end
      add(any)
    else
      read_leaf(reader, key, value, place, add)
    end
  end)
  return nodes
end

--- Compiles a matcher that was read with nil to be seen; refuses the call if it is wrong.
---@param path string of it in errors
---@return table node cmsgpack packs it as it is
function M.compile_value(value, path)
  return read_matcher({ path = path, conditions = 0, operands = 0 }, value, "", 1, matcher.ALL)
end

--- The same from its bytes.
---@param blob string MessagePack map
function M.compile(blob)
  check.refuse(#blob > MOST_BYTES
    and "INVALID match: expected at most " .. MOST_BYTES .. " bytes, got " .. #blob)
  local is_whole, value = msgpack.read(blob, true)
  check.refuse(not is_whole
    and "INVALID match: expected one whole MessagePack map, got invalid bytes, or more than one value")
  return M.compile_value(value, "match")
end

return M
