-- Keys of constraints: what each has in use, until when it is closed, and where it holds lanes.
--
-- In a script a key is a list of the fields below.
local batch = require "jqlua.base.batch"
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local loaded = require "jqlua.limits.loaded"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

M.IN_USE = 1 -- units taken
M.HOLD_MS = 2 -- closed until then by a hold
M.OPENS_MS = 3 -- closed until then for lack of room under the rate
M.USED = 4 -- cost of the starts in keys.STARTS; smooth: the moment of the next start
M.LAST_MS = 5 -- the latest start
M.TIMER_MS = 6 -- in keys.OPENING with this time, or an earlier one
M.PLACES = 7 -- where it holds or held lanes (module limits.parking)
M.NAME = 8
M.OF = 9 -- number of its constraint
M.CHANGED = 10
local IS_NEW = 11
local RECORD = 12 -- its Redis key
M.CLOSED_MS = 13 -- when it last had no room, if the fields above do not say so
local FORMAT = ">I4ddddd"
local USE = ">I4dd" -- the header: IN_USE, HOLD_MS, OPENS_MS
local HEADER = 44
-- After the header: places, and CLOSED_MS like a place, with a name that no queue begins with.
local CLOSED = "@"
local CLOSED_SIZE = 11

--- Like load, from a record that was read with others.
---@param record string its Redis key
---@param raw string|false
local function decode(name, number, record, raw)
  local key
  if raw then
    local in_use, hold_ms, opens_ms, used, last_ms, timer_ms = struct.unpack(FORMAT, raw)
    local places, closed_ms, at = {}, 0, HEADER + 1
    while at <= #raw do
      local place
      place, at = struct.unpack(">I2c0", raw, at)
      if place:sub(1, 1) == CLOSED then
        closed_ms = struct.unpack(">d", place, 2)
      else
        places[#places + 1] = place
      end
    end
    key = { in_use, hold_ms, opens_ms, used, last_ms, timer_ms, places, name, number, false, false, record, closed_ms }
  else
    key = { 0, 0, 0, 0, 0, 0, {}, name, number, false, true, record, 0 }
  end
  loaded.keys[name] = key
  return key
end

--- Reads the keys of a job's entries, and their limits, in one command.
---@param entries table[] of units
function M.fetch(entries)
  local records, limits, n = loaded.keys, loaded.limits, 0
  local wanted
  for i = 1, #entries do
    local entry = entries[i]
    local name = entry[job_units.NAME]
    if not records[name] or limits[entry[job_units.NUMBER]] == nil then
      wanted = wanted or { false, false }
      wanted[n + 1], wanted[n + 2] = keys.KEY .. name, keys.LIMIT .. entry[job_units.DIGITS]
      n = n + 2
    end
  end
  if not wanted then
    return
  end
  local raws = call("MGET", unpack(wanted))
  n = 0
  for i = 1, #entries do
    local entry = entries[i]
    local number, name = entry[job_units.NUMBER], entry[job_units.NAME]
    local is_known = records[name]
    if not is_known or limits[number] == nil then
      n = n + 2
      if not is_known then
        decode(name, number, wanted[n - 1], raws[n - 1])
      end
      if limits[number] == nil then
        limitrecord.decode(number, wanted[n], raws[n])
      end
    end
  end
end

---@param number number of the constraint
---@param value string
---@return table key
function M.load(number, value)
  return M.load_named(job_units.key_name(number, value), number)
end

---@param name string
---@param number? number of its constraint
---@return table key
function M.load_named(name, number)
  local key = loaded.keys[name]
  if not key then
    local record = keys.KEY .. name
    key = decode(name, number or job_units.split_name(name), record, call("GET", record))
  end
  return key
end

--- Reads keys of one constraint, without changes.
---@param values string[] not empty
---@return (number|table)[] found in the same order; of a key that is not closed by time and holds nothing only
--- the units in use, since a table for each would cost several times as much
function M.look_through(number, values)
  local prefix, wanted = keys.KEY .. job_units.key_name(number, ""), {}
  for i = 1, #values do
    wanted[i] = prefix .. values[i]
  end
  local in_use_keys, raws = {}, call("MGET", unpack(wanted))
  for i = 1, #values do
    local raw = raws[i]
    local in_use, hold_ms, opens_ms = 0, 0, 0
    if raw then
      in_use, hold_ms, opens_ms = struct.unpack(USE, raw)
    end
    local is_plain = hold_ms == 0 and opens_ms == 0
      and (not raw or #raw == HEADER or #raw == HEADER + CLOSED_SIZE and raw:sub(HEADER + 3, HEADER + 3) == CLOSED)
    in_use_keys[i] = is_plain and in_use or M.load(number, values[i])
  end
  return in_use_keys
end

---@return string value that names the key
function M.value_of(key)
  local _, value = job_units.split_name(key[M.NAME])
  return value
end

--- Schedules a check of a key, no later than then.
function M.look_at(key, at_ms)
  local now = meta.state[meta.NOW_MS]
  if key[M.TIMER_MS] > now and key[M.TIMER_MS] <= at_ms then
    return
  end
  call("ZADD", keys.OPENING, at_ms, key[M.NAME])
  due.note(due.KEYS, at_ms)
  key[M.TIMER_MS] = at_ms
  key[M.CHANGED] = true
end

--- Counts units taken or released.
---@param more number
function M.count(key, more)
  key[M.IN_USE] = key[M.IN_USE] + more
  key[M.CHANGED] = true
end

--- Records until when a key was closed.
function M.note_closed(key, until_ms)
  key[M.CLOSED_MS] = math.max(key[M.CLOSED_MS], math.min(until_ms, meta.state[meta.NOW_MS]))
end

--- Until when a key that now has room had none.
---@return number closed_ms 0 if unknown
function M.closed_before(key)
  local now, closed_ms = meta.state[meta.NOW_MS], 0
  for _, field in ipairs({ M.CLOSED_MS, M.HOLD_MS, M.OPENS_MS }) do
    local until_ms = key[field]
    if until_ms > closed_ms and until_ms <= now then
      closed_ms = until_ms
    end
  end
  return closed_ms
end

--- Removes an unused key.
function M.forget(key)
  key[M.HOLD_MS], key[M.OPENS_MS], key[M.USED], key[M.LAST_MS], key[M.TIMER_MS] = 0, 0, 0, 0, 0
  if not key[IS_NEW] then
    call("UNLINK", key[RECORD], keys.STARTS .. key[M.NAME])
    call("ZREM", keys.KEYS_OF .. key[M.OF], M.value_of(key))
    call("ZREM", keys.OPENING, key[M.NAME])
    key[IS_NEW] = true
  end
end

local function encode(key)
  local raw = struct.pack(FORMAT, key[M.IN_USE], key[M.HOLD_MS], key[M.OPENS_MS], key[M.USED], key[M.LAST_MS],
    key[M.TIMER_MS])
  for _, place in ipairs(key[M.PLACES]) do
    raw = raw .. struct.pack(">I2c0", #place, place)
  end
  if key[M.CLOSED_MS] > 0 then
    raw = raw .. struct.pack(">I2c1d", CLOSED_SIZE - 2, CLOSED, key[M.CLOSED_MS])
  end
  return raw
end

--- Buffers a key for the next flush.
function M.save(key)
  batch.write(key[RECORD], encode(key))
  if key[IS_NEW] then
    call("ZADD", keys.KEYS_OF .. key[M.OF], 0, M.value_of(key))
    key[IS_NEW] = false
  end
end

return M
