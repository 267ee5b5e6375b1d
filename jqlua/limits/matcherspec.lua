-- Parses and checks matchers. Errors name the invalid place.
local msgpack = require "jqlua.values.msgpack"
local check = require "jqlua.base.check"
local condition = require "jqlua.limits.condition"
local ordering = require "jqlua.values.ordering"
local leaves = require "jqlua.limits.leaves"
local jobpath = require "jqlua.values.jobpath"

local M = {}

local MOST_BYTES = 65536
local MOST_LEVELS = 16
local MOST_CONDITIONS = 100
local MOST_OPERANDS = 1000
local MOST_BRANCHES = 100

local SUBJECTS = "name queue priority tags argument argument.<path> any not"
local OPERATORS = "eq, ne, lt, le, gt, ge, in, glob, exists"

M.CONTRADICTION = ": expected what some job can satisfy, got what none can"

-- Reading one value --------------------------------------------------------------------------------------------------

--- A key as part of a place.
local function shown_key(key)
  local shown = key:sub(1, 80):gsub("[^\33-\57\59-\126]", "?")
  return shown .. (#key > 80 and "..." or "")
end

--- A value for an error message.
local function shown_value(blob, pos)
  local first, count, is_map = msgpack.open(blob, pos)
  if first then
    return (count == 0 and "an empty " or "a ") .. (is_map and "map" or "list")
      .. (count > 0 and not is_map and " of " .. string.format("%.0f", count) or "")
  end
  local text = msgpack.canonical(blob, pos)
  local kind = text and text:sub(1, 1)
  if kind == "s" then
    return check.show(text:sub(2))
  elseif kind == "i" then
    return text:sub(2)
  elseif kind == "d" then
    return check.show(tonumber(text:sub(2)))
  end
  local words = { n = "nil", t = "true", f = "false", b = "binary data", x = "an ext value" }
  return words[kind] or "NaN"
end

local function refusal(place, expected, blob, pos)
  return "INVALID " .. place .. ": expected " .. expected .. ", got " .. shown_value(blob, pos)
end

--- Reads a key of a map: text, and the only one of its kind.
---@param known table the keys before it, to which it is added
---@return string? key
---@return string? problem
local function read_key(reader, pos, place, known)
  local text = msgpack.scalar(reader.blob, pos)
  if not ordering.is_text(text) then
    return nil, refusal(place, "a map with text as keys", reader.blob, pos)
  end
  local key = text:sub(2)
  if known[key] then
    return nil, "INVALID " .. place .. "." .. shown_key(key) .. ": expected each key once, got it twice"
  end
  known[key] = true
  return key
end

--- Reads one operand.
---@return number|string|nil scalar
---@return string? problem
local function read_scalar(reader, kind, use, pos, place)
  reader.operands = reader.operands + 1
  if reader.operands > MOST_OPERANDS then
    return nil, "INVALID match: expected at most " .. MOST_OPERANDS .. " operands, got more"
  end
  local scalar = msgpack.scalar(reader.blob, pos)
  local expected = leaves.expected(kind, use, scalar)
  if expected then
    return nil, refusal(place, expected, reader.blob, pos)
  end
  return scalar
end

-- Reading conditions -------------------------------------------------------------------------------------------------

--- Whether a scalar, not given to an operator, is a pattern.
local function is_pattern(reader, kind, pos)
  if kind == condition.NAME or kind == condition.QUEUE then
    local scalar = msgpack.scalar(reader.blob, pos)
    return ordering.is_text(scalar) and scalar:find("*", 1, true)
  end
end

--- Reads a list of operands.
---@param with_patterns boolean
---@return table? scalars each once
---@return table|string patterns or the problem
local function read_list(reader, kind, pos, place, with_patterns)
  local first, count, is_map = msgpack.open(reader.blob, pos)
  if not first or is_map or count < 1 or count > MOST_OPERANDS then
    return nil, refusal(place, "a list of 1 to " .. MOST_OPERANDS .. " scalars", reader.blob, pos)
  end
  local scalars, patterns, known = {}, {}, {}
  for i = 0, count - 1 do
    local use = with_patterns and is_pattern(reader, kind, first) and "glob" or "equal"
    local scalar, problem = read_scalar(reader, kind, use, first, place .. "[" .. i .. "]")
    if not scalar then
      return nil, problem
    elseif not known[scalar] and use == "glob" then
      patterns[#patterns + 1] = scalar:sub(2)
    elseif not known[scalar] then
      scalars[#scalars + 1] = scalar
    end
    known[scalar] = true
    first = msgpack.skip(reader.blob, first)
  end
  return scalars, patterns
end

--- Reads an operator's operand into the condition.
---@return string? problem
local function read_operator(reader, leaf, name, pos, inside)
  local code = name == "eq" and condition.EQ or name == "ne" and condition.NE or name == "lt" and condition.LT
    or name == "le" and condition.LE or name == "gt" and condition.GT or name == "ge" and condition.GE
    or name == "glob" and condition.GLOB
  if code then
    local use = name == "eq" and "equal" or name == "ne" and "unequal" or name == "glob" and "glob" or "bound"
    local operand, problem = read_scalar(reader, leaf.kind, use, pos, inside)
    if not operand then
      return problem
    elseif leaf.kind == condition.TAGS and name == "ne" then
      leaf.unwanted = operand
    else
      local size = #leaf.operators
      leaf.operators[size + 1] = code
      leaf.operators[size + 2] = name == "glob" and operand:sub(2) or operand
    end
  elseif name == "in" then
    local scalars, problem = read_list(reader, leaf.kind, pos, inside, false)
    leaf.list = scalars
    return not scalars and problem or nil
  elseif name == "exists" then
    local text = msgpack.canonical(reader.blob, pos)
    leaf.exists = text == "t"
    return text ~= "t" and text ~= "f" and refusal(inside, "true or false", reader.blob, pos) or nil
  else
    -- They are too short for suggestions.
    return "INVALID " .. inside .. ": unknown operator, expected one of " .. OPERATORS
  end
end

--- Reads a map of operators.
---@return table? node
---@return string? problem
local function read_operators(reader, leaf, pos, place)
  local first, count = msgpack.open(reader.blob, pos)
  if count == 0 then
    return nil, refusal(place, "at least one of the operators " .. OPERATORS, reader.blob, pos)
  end
  local known = {}
  for _ = 1, count do
    local name, problem = read_key(reader, first, place, known)
    local operand = msgpack.skip(reader.blob, first)
    problem = problem or read_operator(reader, leaf, name, operand, place .. "." .. shown_key(name))
    if problem then
      return nil, problem
    end
    first = msgpack.skip(reader.blob, operand)
  end
  local node = leaves.all_of(leaf)
  return node, not node and "INVALID " .. place .. M.CONTRADICTION or nil
end

--- Reads one condition: a scalar, a list or a map of operators.
---@return table? node
---@return string? problem
local function read_condition(reader, leaf, pos, place)
  local first, _, is_map = msgpack.open(reader.blob, pos)
  if first and is_map then
    return read_operators(reader, leaf, pos, place)
  elseif first then
    local scalars, patterns = read_list(reader, leaf.kind, pos, place, true)
    if not scalars then
      return nil, patterns
    end
    return leaves.one_of(leaf, scalars, patterns)
  end
  local use = is_pattern(reader, leaf.kind, pos) and "glob" or "equal"
  local scalar, problem = read_scalar(reader, leaf.kind, use, pos, place)
  if not scalar then
    return nil, problem
  elseif use == "glob" then
    return leaves.one_of(leaf, {}, { scalar:sub(2) })
  end
  return leaves.one_of(leaf, { scalar }, {})
end

--- The subject of a condition, from its key.
---@return table? leaf see jqlua/limits/leaves.lua
---@return string? problem
local function subject_of(key, place)
  local leaf = { kind = condition.ARGUMENT, is_always_there = true, path = false, operators = {} }
  if key == "name" then
    leaf.kind = condition.NAME
  elseif key == "queue" then
    leaf.kind = condition.QUEUE
  elseif key == "priority" then
    leaf.kind = condition.PRIORITY
  elseif key == "tags" then
    leaf.kind, leaf.is_always_there = condition.TAGS, false
  elseif key:sub(1, 9) == "argument." then
    local segments, expected = jobpath.split(key)
    if not segments then
      return nil, "INVALID " .. place .. "." .. shown_key(key) .. ": expected " .. expected
    end
    leaf.path, leaf.is_always_there = jobpath.compile(segments), false
  elseif key ~= "argument" then
    return nil, check.unknown(place, key, SUBJECTS)
  end
  return leaf
end

local function read_leaf(reader, key, pos, place)
  reader.conditions = reader.conditions + 1
  if reader.conditions > MOST_CONDITIONS then
    return nil, "INVALID match: expected at most " .. MOST_CONDITIONS .. " conditions, got more"
  end
  local leaf, problem = subject_of(key, place)
  if not leaf then
    return nil, problem
  end
  local node
  node, problem = read_condition(reader, leaf, pos, place .. "." .. shown_key(key))
  if node then
    node.is_costly = leaf.kind == condition.ARGUMENT
  end
  return node, problem
end

-- Reading matchers ---------------------------------------------------------------------------------------------------

--- Joins nodes to a group; those that decode the argument come last.
local function to_group(kind, nodes)
  local group = { kind, 0, is_costly = false }
  local size = 2
  for pass = 1, 2 do
    for _, node in ipairs(nodes) do
      if node.is_costly == (pass == 2) then
        for i = 1, #node do
          group[size + i] = node[i]
        end
        size = size + #node
        group.is_costly = pass == 2
      end
    end
  end
  group[2] = size
  return group
end

--- Reads a matcher: conditions that must all hold.
---@param kind number of the group it becomes: ALL or NOT
---@return table? group
---@return string? problem
local function read_matcher(reader, pos, place, level, kind)
  local blob = reader.blob
  local first, count, is_map = msgpack.open(blob, pos)
  if not first or not is_map or count == 0 then
    return nil, refusal(place, "a map of at least one condition", blob, pos)
  elseif level > MOST_LEVELS then
    return nil, "INVALID " .. place .. ": expected at most " .. MOST_LEVELS .. " levels of any and not, got more"
  end
  local nodes, known = {}, {}
  for i = 1, count do
    local key, problem = read_key(reader, first, place, known)
    if not key then
      return nil, problem
    end
    local at = msgpack.skip(blob, first)
    local node
    if key == "not" then
      node, problem = read_matcher(reader, at, place .. ".not", level + 1, condition.NOT)
    elseif key == "any" then
      local branch, branches, is_other = msgpack.open(blob, at)
      if not branch or is_other or branches < 1 or branches > MOST_BRANCHES then
        return nil, refusal(place .. ".any", "a list of 1 to " .. MOST_BRANCHES .. " matchers", blob, at)
      end
      local any = {}
      for j = 1, branches do
        any[j], problem = read_matcher(reader, branch, place .. ".any[" .. j - 1 .. "]", level + 1, condition.ALL)
        if problem then
          return nil, problem
        end
        branch = msgpack.skip(blob, branch)
      end
      node = to_group(condition.ANY, any)
    else
      node, problem = read_leaf(reader, key, at, place)
    end
    if not node then
      return nil, problem
    end
    nodes[i] = node
    first = msgpack.skip(blob, at)
  end
  return to_group(kind, nodes)
end

--- Reads a whole matcher.
---@param blob string
---@return table? program see jqlua/limits/matcher.lua
---@return string? problem
function M.read(blob)
  if #blob == 0 then
    return nil, "INVALID match: expected one MessagePack map, got no bytes"
  elseif #blob > MOST_BYTES then
    return nil, "INVALID match: expected at most " .. MOST_BYTES .. " bytes, got " .. #blob
  elseif not msgpack.is_whole(blob) then
    return nil, "INVALID match: expected one whole MessagePack map, got invalid bytes, or more than one value"
  end
  local program, problem = read_matcher({ blob = blob, conditions = 0, operands = 0 }, 1, "match", 1, condition.ALL)
  return program and { unpack(program, 3) }, problem
end

return M
