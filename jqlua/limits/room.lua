-- Whether keys of constraints have room.
--
-- A key is closed while its jobs use all its concurrency, or until a time: because it was put on hold, or because the
-- rate has no room. Of each key the moments of its latest starts are stored, so that as many as the limit lie in any
-- period.
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
local function leaves_ms(key, at)
  local start = call("GETRANGE", keys.STARTS .. key.name, at * SIZE, at * SIZE + SIZE - 1)
  local at_ms = #start == SIZE and struct.unpack(MOMENT, start) + key.limit.period_ms or 0
  return at_ms > moment(key) and at_ms or 0
end

--- How many starts lie in the window that ends now.
function M.starts_in(key)
  local low, high = 0, call("STRLEN", keys.STARTS .. key.name) / SIZE
  local count = high
  while low < high do
    local middle = math.floor((low + high) / 2)
    if leaves_ms(key, middle) > 0 then
      high = middle
    else
      low = middle + 1
    end
  end
  return count - low
end

--- Counts the start of a job under a key that had room: what lies before as many as the limit has left the window, and
--- goes now and then.
function M.note_start(key)
  key.last_ms, key.is_changed = moment(key), true
  local starts, most = keys.STARTS .. key.name, key.limit.rate
  if call("APPEND", starts, struct.pack(MOMENT, key.last_ms)) >= 2 * SIZE * most then
    call("SET", starts, call("GETRANGE", starts, -SIZE * most, -1))
  end
end

--- Whether running jobs use all the concurrency.
function M.is_full(key)
  local most = key.limit.concurrency
  return most ~= 0 and key.in_use >= most
end

--- Until when a key is closed, other than by running jobs.
function M.closed_until(key)
  local hold_ms, opens_ms = key.hold_ms, key.opens_ms
  return opens_ms > key.last_ms and opens_ms > hold_ms and opens_ms or hold_ms
end

--- Whether a key is open, as far as is recorded.
function M.is_open(key)
  return not key.limit or M.closed_until(key) <= meta.state[meta.NOW_MS] and not M.is_full(key)
end

--- Whether the rate has room for a start. If it has none, the key is closed until it has.
local function has_room(key)
  local opens_ms = leaves_ms(key, -key.limit.rate)
  if opens_ms > 0 then
    key.opens_ms, key.is_changed = opens_ms, true
  end
  return opens_ms == 0
end

--- The first key without room.
---@param job_keys table[] keys
---@return table? key
function M.lacking(job_keys)
  for i = 1, #job_keys do
    local key = job_keys[i]
    local limit = key.limit
    if limit and (not M.is_open(key) or limit.rate > 0 and not has_room(key)) then
      return key
    end
  end
end

--- When a key opens, if known, without changes.
---@return number? opens_ms
function M.opens_at(key)
  local opens_ms = math.max(M.closed_until(key), key.limit.rate > 0 and leaves_ms(key, -key.limit.rate) or 0)
  return opens_ms > meta.state[meta.NOW_MS] and opens_ms or nil
end

--- Writes a key, or removes it if it is unused and its starts no longer count.
local function save(key)
  local limit = key.limit
  if key.queues == "" and (not limit or key.in_use == 0) then
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
