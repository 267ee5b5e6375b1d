-- Keys of constraints: what each has in use, until when it is closed, and where it holds lanes. And limits, the part of
-- a constraint that every start needs.
--
-- In a script a key is a table {name, number: of its constraint, in_use: units taken, hold_ms: closed until then by a
-- hold, opens_ms: closed until then for lack of room under the rate, last_ms: the latest start,
-- timer_ms: in keys.OPENING with this time or an earlier one, queues: in which it holds or held lanes
-- (module limits.parking), is_changed, is_new: it has no record}.
local batch = require "jqlua.base.batch"
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

local FORMAT = ">I4dddd"
local HEADER = 36
local LIMIT = ">ddd"

-- What this call has read.
M.keys = {} -- by name
M.limits = {} -- by number; false where the constraint is gone

local function limit_key(number)
  return keys.LIMIT .. string.format("%d", number)
end

---@param raw string|false
---@return table? limit {concurrency, rate: starts in a period, both 0 for none, period_ms, id: of the constraint}; nil
--- if that was removed
local function decode_limit(number, raw)
  local limit = false
  if raw then
    local concurrency, rate, period_ms, at = struct.unpack(LIMIT, raw)
    limit = { concurrency = concurrency, rate = rate, period_ms = period_ms, id = raw:sub(at) }
  end
  M.limits[number] = limit
  return limit or nil
end

---@return table? limit as of decode_limit
function M.limit(number)
  local limit = M.limits[number]
  if limit ~= nil then
    return limit or nil
  end
  return decode_limit(number, call("GET", limit_key(number)))
end

--- Sets the limits of a constraint, with the next flush.
---@param definition table as module limits.constraints has it
function M.set_limit(definition)
  local period_ms = definition.p and math.ceil(definition.p * 1000) or 0
  local raw = struct.pack(LIMIT, definition.c or 0, definition.l or 0, period_ms) .. definition.i
  decode_limit(definition.n, raw)
  batch.write(limit_key(definition.n), raw)
end

--- Removes the limits of a removed constraint.
function M.delete_limit(number)
  M.limits[number] = false
  call("UNLINK", limit_key(number))
end

--- Like load, from a record that was read with others.
---@param raw string|false
local function decode(name, number, raw)
  local key = {
    name = name, number = number, in_use = 0, hold_ms = 0, opens_ms = 0, last_ms = 0, timer_ms = 0,
    queues = {}, is_changed = false, is_new = not raw,
  }
  if raw then
    key.in_use, key.hold_ms, key.opens_ms, key.last_ms, key.timer_ms = struct.unpack(FORMAT, raw)
    local at = HEADER + 1
    while at <= #raw do
      local queue_name
      queue_name, at = struct.unpack(">I2c0", raw, at)
      key.queues[#key.queues + 1] = queue_name
    end
  end
  M.keys[name] = key
  return key
end

--- Reads the keys of a job's entries, and their limits, in one command.
---@param entries table[] of units
function M.fetch(entries)
  local records, limits, n = M.keys, M.limits, 0
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
        decode(name, number, raws[n - 1])
      end
      if limits[number] == nil then
        decode_limit(number, raws[n])
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
  local key = M.keys[name]
  if not key then
    key = decode(name, number or job_units.split_name(name), call("GET", keys.KEY .. name))
  end
  return key
end

--- Reads keys of one constraint in one command.
---@param values string[] not empty
---@return table[] keys in the same order
function M.load_all(number, values)
  local names, wanted, found = {}, {}, {}
  for i, value in ipairs(values) do
    names[i] = job_units.key_name(number, value)
    wanted[i] = keys.KEY .. names[i]
  end
  for i, raw in ipairs(call("MGET", unpack(wanted))) do
    found[i] = M.keys[names[i]] or decode(names[i], number, raw)
  end
  return found
end

---@return string value that names the key
function M.value_of(key)
  local _, value = job_units.split_name(key.name)
  return value
end

--- Schedules a check of a key, no later than then.
function M.look_at(key, at_ms)
  local now = meta.state[meta.NOW_MS]
  if key.timer_ms > now and key.timer_ms <= at_ms then
    return
  end
  call("ZADD", keys.OPENING, at_ms, key.name)
  due.note(due.KEYS, at_ms)
  key.timer_ms = at_ms
  key.is_changed = true
end

--- Counts units taken or released.
---@param more number
function M.count(key, more)
  key.in_use = key.in_use + more
  key.is_changed = true
end

--- Removes an unused key.
function M.forget(key)
  key.hold_ms, key.opens_ms, key.last_ms, key.timer_ms = 0, 0, 0, 0
  if not key.is_new then
    call("UNLINK", keys.KEY .. key.name, keys.STARTS .. key.name)
    call("ZREM", keys.KEYS_OF .. key.number, M.value_of(key))
    call("ZREM", keys.OPENING, key.name)
    key.is_new = true
  end
end

local function encode(key)
  local raw = struct.pack(FORMAT, key.in_use, key.hold_ms, key.opens_ms, key.last_ms, key.timer_ms)
  for _, queue_name in ipairs(key.queues) do
    raw = raw .. struct.pack(">I2c0", #queue_name, queue_name)
  end
  return raw
end

--- Buffers a key for the next flush.
function M.save(key)
  batch.write(keys.KEY .. key.name, encode(key))
  if key.is_new then
    call("ZADD", keys.KEYS_OF .. key.number, 0, M.value_of(key))
    key.is_new = false
  end
end

return M
