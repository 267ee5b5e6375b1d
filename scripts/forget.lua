-- Removes a queue that has no jobs, with its settings and statistics.
--
-- @arg    name   queue
-- @arg    actor  actor?
-- @reply  nothing
-- @errors INVALID name, NOTFOUND name, CONFLICT name (it has jobs)
-- @flags  drain
-- @role   operator
-- @over   all
-- @http   DELETE /queue/{name}
local arguments = require "jqlua.base.arguments"
local buckets = require "jqlua.statistics.buckets"
local check = require "jqlua.base.check"
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local lane_index = require "jqlua.limits.lane_index"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local call = redis.call

local MOST_NAMES = 1000
local MOST_ENTRIES = 1000

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
local function forget_lanes(queue, name)
  local index = keys.LANES .. name
  for _ = 1, queues.has(queue, queues.FAIR) and MOST_ENTRIES or 0 do
    local place = lane_index.first(index, name)
    if not place then
      break
    end
    lane_index.remove(index, place)
  end
  call("UNLINK", index)
end

local spec = arguments.spec(HEAD)
local name = spec.name
local queue = queues.load(name)
check.refuse(queue[queues.IS_NEW] and check.missing("name", "queue", name))
check.refuse(queues.has_jobs(queue) and "CONFLICT name: " .. check.show(name) .. " has jobs: discard them first")
if queues.has(queue, queues.LANED) then
  forget_lanes(queue, name)
end
queues.set_head(queue, meta.NONE)
queues.note_removal(queue)
call("ZREM", keys.QUEUE_NAMES, name)
call("ZREM", keys.DUE, due.LEASES .. name, due.WAITING .. name, due.ENDED .. name, due.PLACING .. name)
call("UNLINK", keys.QUEUE .. name, keys.EXPIRING .. name, keys.FAIR .. name, keys.WEIGHTS .. name, keys.WALK .. name,
  keys.SENT .. name, keys.OWN_SETTINGS .. name)
buckets.fold(math.huge) -- otherwise the log would bring back what is forgotten
forget_matching(name)
buckets.forget(name)
trail.note("forget", name, spec)
transition.commit()
return 1
