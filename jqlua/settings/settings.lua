-- A namespace's settings: numbers behind meta's header, in the order of module settings.settingspec. A queue may have
-- its own values of some: a map from places in this order to values.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"

local M = {}

local DOUBLE = 8

-- Places of single settings.
local RETRY = 1 -- base, cap, jitter
M.RESULT_TTL = 4
M.RESULT_GRACE = 5
M.REQUEST_TTL = 6
local DONE = 7 -- ttl, max
local ERROR = 9
local CANCELLED = 11
M.CANCEL_RUNNING = 13
M.WORKER_TTL = 14
M.EVENTS_MAX = 15
M.TRAIL_MAX = 17
local LATE_AFTER = 18

-- Settings of queues that this call has read, by name of the queue.
local known = {}

--- The settings of its own that a queue has.
---@return table<number, number> values by place in the order of storage
function M.own(queue)
  local name = queue[queues.NAME]
  if not known[name] then
    local raw = redis.call("GET", keys.OWN_SETTINGS .. name)
    known[name] = raw and cmsgpack.unpack(raw) or {}
  end
  return known[name]
end

--- Writes a queue's own settings; the caller saves its record.
---@param values table as own gives them
function M.save_own(queue, values)
  local name = queue[queues.NAME]
  known[name] = values
  if not next(values) then
    redis.call("DEL", keys.OWN_SETTINGS .. name)
    queues.clear(queue, queues.OWN)
    return
  end
  redis.call("SET", keys.OWN_SETTINGS .. name, cmsgpack.pack(values))
  queues.set(queue, queues.OWN)
  if not meta.has(meta.HAS_OWN) then
    meta.save_flags(meta.state[meta.FLAGS] + meta.HAS_OWN)
  end
end

---@param place number
---@param queue? table for this queue
---@return number
function M.at(place, queue)
  return queue and queue[queues.FLAGS] >= queues.OWN and M.own(queue)[place]
    or (struct.unpack(">d", meta.state[meta.RAW], meta.SETTINGS_OFFSET + 1 + (place - 1) * DOUBLE))
end

--- How long a ready job of a queue may wait before it counts as late.
---@return number ms
function M.late_ms(queue)
  return 1000 * M.at(LATE_AFTER, queue)
end

---@return number base_s, number cap_s, number jitter
function M.retry(queue)
  return M.at(RETRY, queue), M.at(RETRY + 1, queue), M.at(RETRY + 2, queue)
end

--- How long, and how many of a queue, records of an ended state are kept.
---@param letter string d, e or c
---@return number ttl_s, number max
function M.retention(letter, queue)
  local place = letter == states.DONE and DONE or letter == states.ERROR and ERROR or CANCELLED
  return M.at(place, queue), M.at(place + 1, queue)
end

--- Whether a queue's jobs that end in this state are dropped.
---@param letter string d, e or c
---@return boolean
function M.is_dropped(letter, queue)
  if queues.has(queue, queues.OWN) then
    local ttl_s, max = M.retention(letter, queue)
    return ttl_s == 0 or max == 0
  end
  return meta.has(letter == states.DONE and meta.NO_DONE or letter == states.ERROR and meta.NO_ERROR
    or meta.NO_CANCELLED)
end

return M
