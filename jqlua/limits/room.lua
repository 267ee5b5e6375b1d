-- Whether keys of constraints have room.
--
-- A key is closed while its jobs use all its concurrency, or until a time: because it was put on hold, or because the
-- rate has no room. Of each key the moments of its latest starts are stored, so that as many as the limit lie in any
-- period.
local job_units = require "jqlua.limits.job_units"
local keyrecord = require "jqlua.limits.keyrecord"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

local MOMENT = ">d"
local SIZE = 8

--- The moment of a start: that of the last if the clock went back.
local function moment(key)
  return math.max(meta.state[meta.NOW_MS], key.last_ms)
end

--- When a stored start leaves the window.
---@param at number which of them, from 0 on, or from the end if it is negative
---@return number leaves_ms 0 if there are not so many, or it has left
local function leaves_ms(limit, key, at)
  local start = call("GETRANGE", keys.STARTS .. key.name, at * SIZE, at * SIZE + SIZE - 1)
  local at_ms = #start == SIZE and struct.unpack(MOMENT, start) + limit.period_ms or 0
  return at_ms > moment(key) and at_ms or 0
end

--- How many starts lie in the window that ends now.
function M.starts_in(limit, key)
  local low, high = 0, call("STRLEN", keys.STARTS .. key.name) / SIZE
  local count = high
  while low < high do
    local middle = math.floor((low + high) / 2)
    if leaves_ms(limit, key, middle) > 0 then
      high = middle
    else
      low = middle + 1
    end
  end
  return count - low
end

--- Counts the start of a job under a key that had room: what lies before as many as the limit has left the window, and
--- goes now and then.
function M.note_start(limit, key)
  key.last_ms, key.is_changed = moment(key), true
  local starts = keys.STARTS .. key.name
  if call("APPEND", starts, struct.pack(MOMENT, key.last_ms)) >= 2 * SIZE * limit.rate then
    call("SET", starts, call("GETRANGE", starts, -SIZE * limit.rate, -1))
  end
end

--- Whether running jobs use all the concurrency.
function M.is_full(limit, key)
  local most = limit.concurrency
  return most ~= 0 and key.in_use >= most
end

--- Until when a key is closed, other than by running jobs.
function M.closed_until(key)
  local opens_ms = key.opens_ms
  return math.max(key.hold_ms, opens_ms > key.last_ms and opens_ms or 0)
end

--- Whether a key is open, as far as is recorded.
---@param limit table|false|nil
function M.is_open(limit, key)
  if not limit then
    return true
  end
  return M.closed_until(key) <= meta.state[meta.NOW_MS] and not M.is_full(limit, key)
end

--- Whether the rate has room for a start. If it has none, the key is closed until it has.
local function has_room(limit, key)
  local opens_ms = leaves_ms(limit, key, -limit.rate)
  if opens_ms > 0 then
    key.opens_ms, key.is_changed = opens_ms, true
  end
  return opens_ms == 0
end

--- The first entry without room.
---@param entries table[] of units, fetched
---@return table? entry
function M.lacking(entries)
  for i = 1, #entries do
    local entry = entries[i]
    local limit, key = keyrecord.limits[entry[job_units.NUMBER]], keyrecord.keys[entry[job_units.NAME]]
    if not M.is_open(limit, key) or limit and limit.rate > 0 and not has_room(limit, key) then
      return entry
    end
  end
end

--- When a key opens, if known, without changes.
---@return number? opens_ms
function M.opens_at(limit, key)
  local opens_ms = math.max(M.closed_until(key), limit.rate > 0 and leaves_ms(limit, key, -limit.rate) or 0)
  return opens_ms > meta.state[meta.NOW_MS] and opens_ms or nil
end

--- Writes a key, or removes it if it is unused and its starts no longer count.
local function save(key)
  local limit = keyrecord.limit(key.number)
  if not key.queues[1] and (not limit or key.in_use == 0) then
    local until_ms = limit and math.max(key.hold_ms, limit.rate > 0 and key.last_ms + limit.period_ms or 0) or 0
    if until_ms <= meta.state[meta.NOW_MS] then
      return keyrecord.forget(key)
    end
    keyrecord.look_at(key, until_ms)
  end
  keyrecord.save(key)
end

--- Buffers the keys that changed for the next flush.
function M.save_all()
  for _, key in next, keyrecord.keys do
    if key.is_changed then
      save(key)
      key.is_changed = false
    end
  end
end

return M
