-- Compiles conditions to leaves of a program (jqlua/limits/condition.lua), and detects those that nothing can fulfil.
--
-- A `leaf` is a parsed condition: `kind` of its subject, `is_always_there`, `path` (of an argument, compiled; else
-- false), and from its operators `operators` (codes and scalars in turn), `list` (of `in`), `exists`, and for tags
-- `unwanted` (of `ne`, which applies to all tags, while the others apply to one).
local check = require "jqlua.base.check"
local condition = require "jqlua.limits.condition"
local ordering = require "jqlua.values.ordering"

local M = {}

local LEAST_PRIORITY = -2147483648
local MOST_PRIORITY = 2147483647

--- Checks a scalar of a condition.
---@param kind number of the subject
---@param use string equal (also one of several), unequal, bound, glob
---@param scalar number|string|nil
---@return string? expected nil if the scalar is valid
function M.expected(kind, use, scalar)
  local is_text = ordering.is_text(scalar)
  local number = ordering.to_number(scalar)
  if use == "glob" then
    return not is_text and "text, a pattern" or nil
  elseif kind == condition.ARGUMENT then
    if use == "bound" then
      return not (is_text or number) and "a number or text" or nil
    end
    return not scalar and "a scalar: nil, a boolean, a number but NaN, text, binary data or ext" or nil
  elseif kind == condition.PRIORITY then
    if use == "equal" then
      -- Here -0 is 0, as it is to all that compares.
      local is_fit = check.is_integer(number and number + 0, LEAST_PRIORITY, MOST_PRIORITY)
      return not is_fit and "an integer from -2147483648 to 2147483647" or nil
    end
    return not number and "a number" or nil
  elseif use ~= "equal" then
    return not is_text and "text" or nil
  end
  local has_star = kind == condition.QUEUE and is_text and scalar:find("*", 1, true)
  local is_fit = is_text and not has_star and check.is_name(scalar:sub(2))
  return not is_fit and check.NAME .. (kind == condition.QUEUE and ", no *" or "") or nil
end

--- The least text that is greater than every one that begins with `prefix`; nil when there is none.
local function behind_prefix(prefix)
  local head, last = prefix:match("^(.*)([^\255])\255*$")
  return head and head .. string.char(last:byte() + 1)
end

--- A bound in its plainest form. Every text has a next one and every priority too, so theirs are never "less or equal"
--- (texts) and always so (priorities).
---@return number|string bound
---@return boolean is_strict whether the bound itself is out
local function plain_bound(kind, operator, bound)
  local is_lower = operator == condition.GT or operator == condition.GE
  local is_strict = operator == condition.GT or operator == condition.LT
  if ordering.is_text(bound) then
    return is_strict == is_lower and bound .. "\0" or bound, not is_lower
  elseif kind ~= condition.PRIORITY then
    return bound, is_strict
  end
  local value = ordering.to_number(bound)
  if is_lower then
    value = is_strict and math.floor(value) + 1 or math.ceil(value)
  else
    value = is_strict and math.ceil(value) - 1 or math.floor(value)
  end
  return math.max(LEAST_PRIORITY - 1, math.min(MOST_PRIORITY + 1, value)), false
end

--- Makes the bounds closer.
local function add_bound(bounds, kind, operator, operand)
  local bound, is_strict = plain_bound(kind, operator, operand)
  local is_lower = operator == condition.GT or operator == condition.GE
  local side = is_lower and "low" or "high"
  local old = bounds[side]
  local sign = old and ordering.compare(bound, old.bound)
  if old and not sign then
    bounds.is_mixed = true
  elseif not old or sign == (is_lower and 1 or -1) or sign == 0 and is_strict then
    bounds[side] = { bound = bound, is_strict = is_strict }
  end
end

--- The bounds that the operators set, and what the subject is.
local function bounds_of(kind, operators)
  local bounds = {}
  for i = 1, #operators, 2 do
    local operator, operand = operators[i], operators[i + 1]
    if operator >= condition.LT and operator <= condition.GE then
      add_bound(bounds, kind, operator, operand)
    elseif operator == condition.GLOB then
      local prefix = operand:match("^[^*]*")
      local behind = behind_prefix(prefix)
      add_bound(bounds, kind, condition.GE, "s" .. prefix)
      if behind then
        add_bound(bounds, kind, condition.LT, "s" .. behind)
      end
    end
  end
  if kind == condition.PRIORITY then
    add_bound(bounds, kind, condition.GE, LEAST_PRIORITY)
    add_bound(bounds, kind, condition.LE, MOST_PRIORITY)
  elseif kind ~= condition.ARGUMENT then
    -- Names are UTF-8 without control characters.
    add_bound(bounds, kind, condition.GE, "s ")
    add_bound(bounds, kind, condition.LT, "s\245")
  end
  return bounds
end

--- Whether there is a value between the bounds, and if there is but one, which.
---@return boolean is_possible
---@return number|string|nil only
local function look_between(bounds)
  local low, high = bounds.low, bounds.high
  if bounds.is_mixed then
    return false
  elseif not low and not high then
    return true
  elseif not low then
    low = { bound = ordering.is_text(high.bound) and "s" or "d-inf" }
  elseif not high then
    if ordering.is_text(low.bound) then
      return true -- there is no greatest text
    end
    high = { bound = "dinf" }
  end
  local sign = ordering.compare(low.bound, high.bound)
  if not sign or sign > 0 then
    return false
  elseif sign == 0 then
    return not (low.is_strict or high.is_strict), low.bound
  end
  return true, ordering.is_text(low.bound) and high.bound == low.bound .. "\0" and low.bound or nil
end

--- The only values a condition can hold for, where that is known: of `in`, `eq`, a glob without *, bounds that meet.
---@return boolean is_possible
---@return table? candidates scalars; not all of them need do
local function candidates_of(leaf)
  local operators = leaf.operators
  if leaf.list then
    return true, leaf.list
  end
  for i = 1, #operators, 2 do
    local operator, operand = operators[i], operators[i + 1]
    if operator == condition.EQ then
      return true, { operand }
    elseif operator == condition.GLOB and not operand:find("*", 1, true) then
      return true, { "s" .. operand }
    end
  end
  local is_possible, only = look_between(bounds_of(leaf.kind, operators))
  return is_possible, only and { only }
end

--- The operator and operand of a pattern.
local function glob_of(pattern)
  if pattern:find("*", 1, true) == #pattern then
    return condition.PREFIX, "s" .. pattern:sub(1, -2)
  end
  return condition.GLOB, pattern
end

--- Puts a condition of one operator, or for tags of several, into the form it is tested in.
local function to_nodes(leaf, operators)
  local nodes = {}
  if leaf.kind == condition.TAGS then
    nodes = { condition.TAGS, 3 + #operators, leaf.unwanted or false, unpack(operators) }
  else
    for i = 1, #operators, 2 do
      nodes[#nodes + 1] = leaf.kind + operators[i]
      if leaf.kind == condition.ARGUMENT then
        nodes[#nodes + 1] = leaf.path and (#leaf.path == 1 and leaf.path[1] or leaf.path)
      end
      nodes[#nodes + 1] = operators[i + 1]
    end
  end
  return nodes
end

--- A condition that holds for one of some values, or for what fits one of some patterns.
---@param scalars table list
---@param patterns string[]
---@return table nodes
function M.one_of(leaf, scalars, patterns)
  if #patterns == 1 and #scalars == 0 then
    return to_nodes(leaf, { glob_of(patterns[1]) })
  elseif #patterns > 0 then
    return to_nodes(leaf, { condition.LIKE, { condition.to_set(scalars), unpack(patterns) } })
  elseif #scalars == 1 then
    return to_nodes(leaf, { condition.EQ, scalars[1] })
  end
  local set = condition.to_set(scalars)
  return to_nodes(leaf, set and { condition.IN, set } or { condition.AMONG, scalars })
end

--- What of some values fulfils the operators.
local function filter(leaf, scalars)
  local left, operators = {}, leaf.operators
  for _, scalar in ipairs(scalars) do
    local is_left = scalar ~= leaf.unwanted and not M.expected(leaf.kind, "equal", scalar)
    for i = 1, #operators, 2 do
      is_left = is_left and condition.holds(operators[i], operators[i + 1], scalar)
    end
    if is_left then
      left[#left + 1] = scalar
    end
  end
  return left
end

--- A condition of operators. When only certain values can fulfil them, it asks for these and for nothing else.
---@return table? nodes nil when no value can fulfil them
function M.all_of(leaf)
  local operators = leaf.operators
  if leaf.exists == false then
    local is_content = not leaf.list and (#operators == 0 or #operators == 2 and operators[1] == condition.NE)
    leaf.unwanted = nil
    return is_content and not leaf.is_always_there and to_nodes(leaf, { condition.EXISTS, false }) or nil
  end
  local is_possible, candidates = candidates_of(leaf)
  if not is_possible then
    return nil
  elseif candidates then
    local left = filter(leaf, candidates)
    return #left > 0 and M.one_of(leaf, left, {}) or nil
  elseif leaf.exists then
    operators[#operators + 1], operators[#operators + 2] = condition.EXISTS, true
  end
  for i = 1, #operators, 2 do
    if operators[i] == condition.GLOB then
      operators[i], operators[i + 1] = glob_of(operators[i + 1])
    end
  end
  return to_nodes(leaf, operators)
end

return M
