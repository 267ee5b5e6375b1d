-- Fair sharing of a queue: parses and sets its levels.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local placement = require "jqlua.limits.placement"
local matcher = require "jqlua.limits.matcher"
local queues = require "jqlua.queue.queues"
local serial = require "jqlua.base.serial"

local M = {}

local call = redis.call

local MOST_LEVELS = 3
local MOST_WEIGHTS = 1000
local WEIGHTS = "a map from at most 1000 texts to weights"

local function check_weights(weights, path)
  if type(weights) ~= "table" then
    return check.problem(path, WEIGHTS, weights)
  end
  local count = 0
  for value, weight in pairs(weights) do
    count = count + 1
    if type(value) ~= "string" then
      return "INVALID " .. path .. ": expected " .. WEIGHTS .. ", got the key " .. check.show(value)
    elseif not check.is_number(weight, 0.001, 1000) then
      return check.problem(path .. "." .. check.part(value), "a number from 0.001 to 1000", weight)
    end
  end
  if count > MOST_WEIGHTS then
    return "INVALID " .. path .. ": expected " .. WEIGHTS .. ", got " .. count
  end
end

--- Checks the field `fair`.
---@return table? levels {b path, t path as given, w weights?}
---@return string? problem
function M.parse(value)
  if value == nil then
    return nil
  elseif not check.is_list(value, 0, MOST_LEVELS) then
    return nil, check.problem("fair", "a list of up to " .. MOST_LEVELS .. " levels {by, weights?}", value)
  end
  local levels = {}
  for i, level in ipairs(value) do
    local path = "fair[" .. i - 1 .. "]"
    if type(level) ~= "table" then
      return nil, check.problem(path, "a map with by and weights", level)
    end
    for field in pairs(level) do
      if field ~= "by" and field ~= "weights" then
        return nil, check.unknown(path, field, "by weights")
      end
    end
    local parsed, problem = matcher.parse_path(level.by, path .. ".by")
    problem = problem or level.weights ~= nil and check_weights(level.weights, path .. ".weights")
    if problem then
      return nil, problem
    end
    levels[i] = { b = parsed, t = level.by, w = level.weights }
  end
  return levels
end

local function same(old, new)
  if #old ~= #new then
    return false
  end
  for i, level in ipairs(new) do
    if old[i].t ~= level.t then
      return false
    end
  end
  return true
end

--- Sets a queue's levels. Waiting jobs are sorted again, unless only weights changed.
function M.set(queue, levels)
  local name = queue[queues.NAME]
  if not levels[1] and not queues.has(queue, queues.FAIR) then
    return
  end
  queues.set(queue, queues.FAIR)
  local before = placement.fairness(queue)
  local is_same = same(before.l, levels)
  call("DEL", keys.WEIGHTS .. name)
  local packed = {}
  for i, level in ipairs(levels) do
    packed[i] = { b = level.b, t = level.t }
    for value, weight in pairs(level.w or {}) do
      call("HSET", keys.WEIGHTS .. name, i .. constraints.shorten("s" .. value):sub(2), string.format("%.17g", weight))
    end
  end
  if is_same then
    return
  end
  -- Turns may be left from a removed queue of this name.
  call("SET", keys.FAIR .. name, cmsgpack.pack({ l = packed, g = serial.next() }))
  queues.set(queue, queues.LANED)
  queues.set(queue, queues.UNSORTED)
  call("DEL", keys.WALK .. name)
  -- Waiting jobs may have been placed under the old levels.
  if placement.is_settled(queue) then
    return
  end
  local priority = placement.least(queue)
  if priority and queue[queues.PAUSED] == 0 and queue[queues.HEAD_PRIORITY] ~= meta.NONE then
    queues.note_head(queue, priority, queues.LEAST_ID)
  end
end

return M
