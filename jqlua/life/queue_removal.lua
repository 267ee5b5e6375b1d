-- Removes a queue without jobs, with all that is kept of it.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"
local lane_index = require "jqlua.limits.lane_index"
local buckets = require "jqlua.statistics.buckets"

local M = {}

local call = redis.call

local KINDS = "rwev" -- of due: leases, waiting, ended, placing
local MOST_NAMES = 1000
local MOST_ENTRIES = 1000

---@return boolean
function M.has_jobs(queue)
  local sets = {}
  for state in states.SETS:gmatch(".") do
    sets[#sets + 1] = queues.key(queue, state)
  end
  return call("EXISTS", unpack(sets)) > 0
end

--- Removes what is cached of constraints for each name of its jobs that the statistics know.
local function forget_matching(name)
  local unwanted = { keys.MATCHING .. name .. "\0" .. name }
  for _, pair in ipairs(call("ZRANGEBYLEX", keys.STATS_PAIRS, "[" .. name .. "\0", "(" .. name .. "\1", "LIMIT", 0,
    MOST_NAMES)) do
    unwanted[#unwanted + 1] = keys.MATCHING .. pair
  end
  call("UNLINK", unpack(unwanted))
end

--- Removes entries of groups in a fair queue, which stay until they are read: now they never would be.
local function forget_lanes(queue)
  local name = queue[queues.NAME]
  local index = lane_index.of_queue(name)
  for _ = 1, queues.has(queue, queues.FAIR) and MOST_ENTRIES or 0 do
    local place = lane_index.first(index, name)
    if not place then
      break
    end
    lane_index.remove(index, place)
  end
  call("UNLINK", index)
end

--- Removes a queue without jobs.
function M.forget(queue)
  local name = queue[queues.NAME]
  if queues.has(queue, queues.LANED) then
    forget_lanes(queue)
  end
  queues.set_head(queue, meta.NONE)
  queues.note_removal(queue)
  call("ZREM", keys.QUEUE_NAMES, name)
  local due_members = {}
  for kind in KINDS:gmatch(".") do
    due_members[#due_members + 1] = kind .. name
  end
  call("ZREM", keys.DUE, unpack(due_members))
  call("UNLINK", keys.QUEUE .. name, keys.EXPIRING .. name, keys.FAIR .. name, keys.WEIGHTS .. name, keys.WALK .. name,
    keys.SENT .. name, keys.OWN_SETTINGS .. name)
  buckets.fold()
  forget_matching(name)
  buckets.forget(name)
end

return M
