-- A namespace's settings: numbers behind meta's header, in this order. A queue may have its own values of some: a map
-- from places in this order to values.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"

local M = {}

local DOUBLE = 8
local FIRST = meta.HEADER_SIZE + 1

-- Places of single settings.
M.RETRY = FIRST -- base, cap, jitter
M.RESULT_TTL = FIRST + 3 * DOUBLE
M.RESULT_GRACE = FIRST + 4 * DOUBLE
M.REQUEST_TTL = FIRST + 5 * DOUBLE
M.DONE = FIRST + 6 * DOUBLE -- ttl, max
M.ERROR = FIRST + 8 * DOUBLE
M.CANCELLED = FIRST + 10 * DOUBLE
M.CANCEL_RUNNING = FIRST + 12 * DOUBLE
M.WORKER_TTL = FIRST + 13 * DOUBLE
M.LEASE_GRACE = FIRST + 14 * DOUBLE
M.EVENTS_MAX = FIRST + 15 * DOUBLE

--- name, default, least, most; in the order of storage.
M.ALL = {
  { "retry_base", 1, 0, 1e10 },
  { "retry_cap", 3600, 0, 1e10 },
  { "retry_jitter", 0.1, 0, 1 },
  { "result_ttl", 3600, 1, 1e10 },
  { "result_grace", 60, 0, 1e10 },
  { "request_ttl", 600, 1, 86400 },
  { "done_ttl", 86400, 0, 1e10 },
  { "done_max", 10000, 0, 1e9, "integer" },
  { "error_ttl", 2592000, 0, 1e10 },
  { "error_max", 10000, 0, 1e9, "integer" },
  { "cancelled_ttl", 86400, 0, 1e10 },
  { "cancelled_max", 10000, 0, 1e9, "integer" },
  { "cancel_running", 1, 0, 1, "boolean" },
  { "worker_ttl", 30, 1, 86400 },
  { "lease_grace", 0, 0, 86400 },
  { "events_max", 0, 0, 1e7, "integer" },
  { "stats", 1, 0, 1, "boolean" },
  { "trail_max", 10000, 0, 1e6, "integer" },
  { "queues_max", 1e5, 1, 1e9, "integer" },
  { "names_max", 1e5, 1, 1e9, "integer" },
  { "tags_max", 1e6, 1, 1e9, "integer" },
  { "keys_max", 1e6, 1, 1e9, "integer" },
  { "all_keys_max", 5e6, 1, 1e9, "integer" },
  { "late_after", 10, 1, 1e10 },
}
M.EARLY = 17 -- so many precede the pulse in meta
M.TRAIL_MAX = 18
local LATE_AFTER = 24

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

local function own_at(queue, place)
  return M.own(queue)[(place - FIRST) / DOUBLE + 1]
end

---@param queue? table for this queue
---@return number value of the setting at that place
function M.at(place, queue)
  return queue and queue[queues.FLAGS] >= queues.OWN and own_at(queue, place)
    or (struct.unpack(">d", meta.state[meta.RAW], place))
end

--- The namespace's own value of the setting of that number in the order of storage.
function M.value(number)
  if number <= M.EARLY then
    return M.at(FIRST + (number - 1) * DOUBLE)
  end
  local place, raw = meta.LATE_OFFSET + 1 + (number - 1 - M.EARLY) * DOUBLE, meta.state[meta.RAW]
  return #raw >= place + DOUBLE - 1 and struct.unpack(">d", raw, place) or M.ALL[number][2]
end

--- How long a ready job of a queue may wait before it counts as late.
---@return number ms
function M.late_ms(queue)
  return 1000 * (queue[queues.FLAGS] >= queues.OWN and M.own(queue)[LATE_AFTER] or M.value(LATE_AFTER))
end

--- Encodes settings.
---@param values number[] in the order of storage
function M.packed(values, first, last)
  local packed = {}
  for number = first, last do
    packed[#packed + 1] = struct.pack(">d", values[number])
  end
  return table.concat(packed)
end

---@param queue table queue
---@return number base_s, number cap_s, number jitter
function M.retry(queue)
  return M.at(M.RETRY, queue), M.at(M.RETRY + DOUBLE, queue), M.at(M.RETRY + 2 * DOUBLE, queue)
end

--- How long, and how many of a queue, records of an ended state are kept.
---@param letter string d, e or c
---@param queue table queue
---@return number ttl_s, number max
function M.retention(letter, queue)
  local place = letter == states.DONE and M.DONE or letter == states.ERROR and M.ERROR or M.CANCELLED
  return M.at(place, queue), M.at(place + DOUBLE, queue)
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

--- Flags of meta for settings that every call needs.
---@param values table by name
---@return number
function M.flags(values)
  local sum = 0
  local function add(flag, is_set)
    sum = sum + (is_set and flag or 0)
  end
  add(meta.NO_DONE, values.done_ttl == 0 or values.done_max == 0)
  add(meta.NO_ERROR, values.error_ttl == 0 or values.error_max == 0)
  add(meta.NO_CANCELLED, values.cancelled_ttl == 0 or values.cancelled_max == 0)
  add(meta.HAS_EVENTS, values.events_max > 0)
  add(meta.UNCOUNTED, values.stats == 0)
  return sum
end

return M
