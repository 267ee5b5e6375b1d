-- Whether a job fulfils conditions. Every enqueue under constraints pays for this, by the number of functions, calls
-- and table entries: hence few long functions, and the flat form.
--
-- A program is a list of nodes, all of which must be true. A node is a group, {ALL | ANY | NOT, size, node, ...}, or
--   {NAME | QUEUE | PRIORITY + operator, operand}
--   {ARGUMENT + operator, path, operand}, the path as jqlua/values/jobpath.lua looks it up
--   {TAGS, size, text that no tag may equal or false, operator, operand, ...}: one tag must fulfil them all
-- Values and operands are scalars as jqlua/values/msgpack.lua reads them: exact where those of cmsgpack are not.
local ordering = require "jqlua.values.ordering"
local jobpath = require "jqlua.values.jobpath"
local glob = require "jqlua.base.glob"

local M = {}

local byte = string.byte
local sub = string.sub
local seek = string.find

-- Kinds of nodes. Those below TAGS have an operator added.
M.NAME = 16
M.QUEUE = 32
M.PRIORITY = 48
M.ARGUMENT = 64
M.TAGS = 80
M.ALL = 81
M.ANY = 82
M.NOT = 83 -- not all of them

-- Operators.
M.EQ = 1
M.NE = 2
M.LT = 3
M.LE = 4
M.GT = 5
M.GE = 6
M.IN = 7 -- operand: a set
M.AMONG = 8 -- operand: a list
M.PREFIX = 9 -- operand: what the text begins with
M.GLOB = 10 -- operand: the pattern
M.LIKE = 11 -- operand: {set, pattern, pattern, ...}, of texts only
M.EXISTS = 12 -- operand: boolean

-- A set is one text, its members each with a zero byte before and behind: that unpacks at once, where a table would
-- cost for each of its entries.

---@return string? set "" when there are no members; nil when one holds a zero byte itself
function M.to_set(scalars)
  local members = {}
  for i, scalar in ipairs(scalars) do
    members[i] = type(scalar) == "number" and string.format("d%.17g", scalar + 0) or scalar -- + 0: for negative zero
    if members[i]:find("%z") then
      return nil
    end
  end
  return members[1] and "\0" .. table.concat(members, "\0") .. "\0" or ""
end

--- Whether a value that is there fulfils an operator.
---@param value number|string|nil scalar; nil for what equals nothing
---@return boolean
function M.holds(operator, operand, value)
  if operator == M.EQ then
    return value == operand
  elseif operator == M.NE then
    return value ~= operand
  elseif operator == M.EXISTS then
    return operand
  elseif not value then
    return false
  elseif operator == M.IN then
    local member = type(value) == "number" and string.format("d%.17g", value + 0) or value
    -- With zero bytes in it, it could be found across several members.
    return seek(operand, "\0" .. member .. "\0", 1, true) ~= nil and not seek(member, "\0", 1, true)
  elseif operator <= M.GE then
    local sign
    if type(operand) == "number" and type(value) == "number" then
      sign = value < operand and -1 or value == operand and 0 or 1
    else
      sign = ordering.compare(value, operand)
    end
    if sign == 0 then
      return operator == M.LE or operator == M.GE
    end
    return sign == (operator <= M.LE and -1 or 1)
  elseif operator == M.PREFIX then
    return sub(value, 1, #operand) == operand
  elseif operator == M.GLOB then
    return type(value) == "string" and byte(value) == 115 and glob.match(operand, sub(value, 2)) -- s
  end
  if operator == M.LIKE and M.holds(M.IN, operand[1], value) then
    return true
  end
  for i = operator == M.LIKE and 2 or 1, #operand do
    if value == operand[i] or operator == M.LIKE and glob.match(operand[i], sub(value, 2)) then
      return true
    end
  end
  return false
end

local function holds_for_argument(program, at, facts)
  local operator, operand = program[at] % 16, program[at + 2]
  local is_there, value = jobpath.look(program[at + 1], facts)
  if is_there then
    return M.holds(operator, operand, value)
  end
  return operator == M.NE or operator == M.EXISTS and not operand
end

--- Whether the node of tags at `at` holds.
local function holds_for_tags(program, at, tags)
  local unwanted, first, stop = program[at + 2], at + 3, at + program[at + 1]
  local is_found = first == stop
    or #tags == 0 and first + 2 == stop and program[first] == M.EXISTS and not program[first + 1]
  for _, tag in ipairs(tags) do
    local value = "s" .. tag
    if value == unwanted then
      return false
    end
    local does_fit = true
    for i = first, stop - 1, 2 do
      does_fit = does_fit and M.holds(program[i], program[i + 1], value)
    end
    is_found = is_found or does_fit
  end
  return is_found
end

--- How many elements of the program the node at `at` takes.
function M.size(program, at)
  local kind = program[at]
  return kind >= M.TAGS and program[at + 1] or kind > M.ARGUMENT and 3 or 2
end

--- The cost of testing a job: one for each condition, and one more for each pattern that it lists.
---@return number
function M.weight(program, at, stop)
  local sum = 0
  at, stop = at or 1, stop or #program + 1
  while at < stop do
    local kind, size = program[at], M.size(program, at)
    if kind > M.TAGS then
      sum = sum + M.weight(program, at + 2, at + size)
    else
      sum = sum + 1
      for i = kind < M.TAGS and at + size - 1 or at + 2, at + size - 1 do
        sum = sum + (type(program[i]) == "table" and #program[i] or 0)
      end
    end
    at = at + size
  end
  return sum
end

--- Tests a job, which may be known only in part.
---@param program table a compiled matcher
---@param facts table name, queue, priority, tags (a list), argument (a blob); nil: unknown. Use one table
--- for all tests of a job: it also caches what was decoded of the argument
---@param at? number a group; nil for the whole program
---@return boolean? # nil: it depends on what is unknown
function M.test(program, facts, at)
  local kind, stop = M.ALL, #program + 1
  if at then
    kind, stop = program[at], at + program[at + 1]
  end
  local deciding, is_known = kind == M.ANY, true
  at = at and at + 2 or 1
  while at < stop do
    local code, size, result = program[at], 2, nil
    if code < M.ARGUMENT then
      local value
      if code < M.QUEUE then
        value = facts.name and "s" .. facts.name
      elseif code < M.PRIORITY then
        value = facts.queue and "s" .. facts.queue
      else
        value = facts.priority
      end
      if value then
        result = M.holds(code % 16, program[at + 1], value)
      end
    elseif code < M.TAGS then
      size = 3
      if facts.argument then
        result = holds_for_argument(program, at, facts)
      end
    else
      size = program[at + 1]
      if code > M.TAGS then
        result = M.test(program, facts, at)
      elseif facts.tags then
        result = holds_for_tags(program, at, facts.tags)
      end
    end
    if result == deciding then
      return deciding ~= (kind == M.NOT)
    elseif result == nil then
      is_known = false
    end
    at = at + size
  end
  if not is_known then
    return nil
  end
  return kind == M.ALL
end

return M
