-- Which jobs a constraint is about: matchers, compiled once and tested at every enqueue.
--
-- A compiled matcher is one flat list (jqlua/limits/condition.lua). That is cheap to unpack, and cmsgpack packs what is
-- nested deeper than 16 as nil.
local condition = require "jqlua.limits.condition"
local matcherspec = require "jqlua.limits.matcherspec"
local jobpath = require "jqlua.values.jobpath"

local M = {}

M.test = condition.test
M.weight = condition.weight
M.parse_path = jobpath.parse
M.value = jobpath.value
M.amount = jobpath.amount

--- The only values a name, queue or priority can have for the matcher to hold.
---@return string[]? texts nil if no condition at the top names them
local function values_of(program, kind)
  local at = 1
  while at <= #program do
    local operand = program[at + 1]
    if program[at] == kind + condition.EQ then
      return { type(operand) == "number" and string.format("%.0f", operand) or operand:sub(2) }
    elseif program[at] == kind + condition.IN then
      local texts = condition.from_set(operand)
      for i, text in ipairs(texts) do
        texts[i] = text:sub(2)
      end
      return texts
    end
    at = at + condition.size(program, at)
  end
end

--- Whether no value that the matcher names for a subject can fulfil the rest, as in {name: "a", not: {name: "a"}}.
local function is_impossible(program, kind, fact)
  local values = values_of(program, kind)
  for _, value in ipairs(values or {}) do
    if M.test(program, { [fact] = kind == condition.PRIORITY and tonumber(value) or value }) ~= false then
      return false
    end
  end
  return values ~= nil
end

--- Checks and compiles a matcher.
---@param blob string MessagePack map
---@return table? program lists of texts, numbers and booleans: cmsgpack packs it as it is
---@return string? problem
function M.compile(blob)
  local program, problem = matcherspec.read(blob)
  if not program then
    return nil, problem
  elseif is_impossible(program, condition.NAME, "name") or is_impossible(program, condition.QUEUE, "queue")
    or is_impossible(program, condition.PRIORITY, "priority") then
    return nil, "INVALID match" .. matcherspec.CONTRADICTION
  end
  return program
end

return M
