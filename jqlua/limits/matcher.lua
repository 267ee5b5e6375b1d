-- Whether a job fulfils conditions.
--
-- A program is a node, a list: {ALL | ANY | NOT, node, ...}, or what must all hold of one value, for tags of one tag,
-- {kind of value, path or false, operator, operand, operator, operand, ...}, the path as jqlua/values/jobpath.lua looks
-- it up. Values and operands are scalars (jqlua/base/msgpack.lua).
local ordering = require "jqlua.values.ordering"
local jobpath = require "jqlua.values.jobpath"
local msgpack = require "jqlua.base.msgpack"
local glob = require "jqlua.base.glob"

local M = {}

-- Kinds of nodes.
M.NAME = 1
M.QUEUE = 2
M.PRIORITY = 3
M.TAGS = 4
M.ARGUMENT = 5
M.ALL = 6
M.ANY = 7
M.NOT = 8 -- not all of them

-- Operators.
M.EQ = 1
M.IN = 2 -- operand: a set, value -> true
M.LT = 3
M.LE = 4
M.GT = 5
M.GE = 6
M.GLOB = 7
M.EXISTS = 8 -- operand: true

--- Whether a value that is there fulfils all operators of a node.
---@param value number|string|nil scalar; nil for what equals nothing
---@return boolean
local function fits(node, value)
  for i = 3, #node, 2 do
    local operator, operand, does_hold = node[i], node[i + 1], false
    if operator == M.EQ then
      does_hold = value == operand
    elseif operator == M.EXISTS then
      does_hold = true
    elseif value ~= nil and operator == M.IN then
      does_hold = operand[value]
    elseif value ~= nil and operator == M.GLOB then
      does_hold = ordering.is_text(value) and glob.match(operand, value:sub(2))
    elseif value ~= nil then
      local sign = ordering.compare(value, operand)
      if sign == 0 then
        does_hold = operator == M.LE or operator == M.GE
      else
        does_hold = sign == (operator <= M.LE and -1 or 1)
      end
    end
    if not does_hold then
      return false
    end
  end
  return true
end

---@return boolean? # nil: it depends on what is unknown
local function test_value(node, facts)
  local kind = node[1]
  if kind == M.ARGUMENT then
    if not facts.argument then
      return nil
    end
    local value = jobpath.look(node[2], facts)
    return (value ~= nil or not node[2]) and fits(node, msgpack.scalar(value)) or false
  elseif kind == M.TAGS then
    if not facts.tags then
      return nil
    end
    for _, tag in ipairs(facts.tags) do
      if fits(node, "s" .. tag) then
        return true
      end
    end
    return false
  end
  local value
  if kind == M.PRIORITY then
    value = facts.priority
  else
    value = kind == M.NAME and facts.name or kind == M.QUEUE and facts.queue
    value = value and "s" .. value
  end
  if value then
    return fits(node, value)
  end
  return nil
end

--- Tests a job, which may be known only in part.
---@param node table a compiled matcher
---@param facts table name, queue, priority, tags (a list), argument (a blob); nil: unknown. Use one table
--- for all tests of a job: it also caches what was decoded of the argument
---@return boolean? # nil: it depends on what is unknown
function M.test(node, facts)
  local kind, is_known = node[1], true
  if kind < M.ALL then
    return test_value(node, facts)
  end
  local deciding = kind == M.ANY
  for i = 2, #node do
    local result = M.test(node[i], facts)
    if result == deciding then
      return deciding ~= (kind == M.NOT)
    elseif result == nil then
      is_known = false
    end
  end
  if not is_known then
    return nil
  end
  return kind == M.ALL
end

--- What a matcher demands of the queue or the name, if it is one value of one of them.
---@return string? value the kind of node, and the scalar
function M.demanded(node)
  for i = 2, #node do
    local condition = node[i]
    if condition[1] <= M.QUEUE and condition[3] == M.EQ then
      return condition[1] .. condition[4]
    end
  end
end

--- The cost of testing a job: one for each operator.
---@return number
function M.weight(node)
  if node[1] < M.ALL then
    return (#node - 2) / 2
  end
  local sum = 0
  for i = 2, #node do
    sum = sum + M.weight(node[i])
  end
  return sum
end

return M
