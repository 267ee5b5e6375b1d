-- Fair sharing of a queue: parses and sets by what.
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

local MOST_WEIGHTS = 1000
local WEIGHTS = "a map from at most 1000 texts to weights"

local WEIGHT = { "number", 0.001, 1000 }
local FAIR = { by = { "path", required = true }, weights = { "weights" } }

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
---@return table? fair {b path, t path as given, w weights?}; empty: no more
function M.parse(value)
  if value == nil then
    return nil
  end
  check.refuse(type(value) ~= "table" and check.problem("fair", "a map {by, weights?}", value))
  if next(value) == nil then
    return {}
  end
  fields.check(value, FAIR, "fair")
  if value.weights ~= nil then
    check_weights(value.weights, "fair.weights")
  end
  return { b = jobpath.parse(value.by, "fair.by"), t = value.by, w = value.weights }
end

--- Sets by what a queue is shared. Waiting jobs are sorted again, unless only weights changed.
function M.set(queue, fair)
  local name = queue[queues.NAME]
  if not fair.b and not queues.has(queue, queues.FAIR) then
    return
  end
  queues.set(queue, queues.FAIR)
  local before = placement.fairness(queue)
  call("DEL", keys.WEIGHTS .. name)
  for value, weight in pairs(fair.w or {}) do
    call("HSET", keys.WEIGHTS .. name, constraints.shorten("s" .. value):sub(2), string.format("%.17g", weight))
  end
  if before.t == fair.t then
    return
  end
  -- Turns may be left from a removed queue of this name.
  call("SET", keys.FAIR .. name, cmsgpack.pack({ b = fair.b, t = fair.t, g = serial.next() }))
  queues.set(queue, queues.LANED)
  queues.set(queue, queues.UNSORTED)
  call("DEL", keys.WALK .. name)
  -- Waiting jobs may have been placed by another path.
  if placement.is_settled(queue) then
    return
  end
  local priority = placement.least(queue)
  if priority and queue[queues.PAUSED] == 0 and queue[queues.HEAD_PRIORITY] ~= meta.NONE then
    queues.note_head(queue, priority, queues.LEAST_ID)
  end
end

return M
