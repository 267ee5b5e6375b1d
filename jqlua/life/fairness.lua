-- Fair sharing of a queue: parses and sets its levels.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local fields = require "jqlua.base.fields"
local jobpath = require "jqlua.values.jobpath"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local serial = require "jqlua.base.serial"

local M = {}

local call = redis.call

local MOST_LEVELS = 3
local MOST_WEIGHTS = 1000
local WEIGHTS = "a map from at most 1000 texts to weights"

local WEIGHT = { "number", 0.001, 1000 }
local LEVEL = { by = { "path", required = true }, weights = { "weights" } }

local function check_weights(weights, path)
  check.refuse(type(weights) ~= "table" and check.problem(path, WEIGHTS, weights))
  local count = 0
  for value, weight in pairs(weights) do
    count = count + 1
    check.refuse(type(value) ~= "string"
      and "INVALID " .. path .. ": expected " .. WEIGHTS .. ", got the key " .. check.show(value))
    fields.check_value(weight, WEIGHT, path .. ".", check.part(value))
  end
  check.refuse(count > MOST_WEIGHTS and "INVALID " .. path .. ": expected " .. WEIGHTS .. ", got " .. count)
end

--- Checks the field `fair`.
---@return table? levels {b path, t path as given, w weights?}
function M.parse(value)
  if value == nil then
    return nil
  end
  check.refuse(not check.is_list(value, 0, MOST_LEVELS)
    and check.problem("fair", "a list of up to " .. MOST_LEVELS .. " levels {by, weights?}", value))
  local levels = {}
  for i, level in ipairs(value) do
    local path = "fair[" .. i - 1 .. "]"
    fields.check(level, LEVEL, path)
    levels[i] = { b = jobpath.parse(level.by, path .. ".by"), t = level.by, w = level.weights }
    if level.weights ~= nil then
      check_weights(level.weights, path .. ".weights")
    end
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
