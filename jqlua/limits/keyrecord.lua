-- Keys of constraints: what each has in use, until when it is closed, and where it holds lanes. And limits, the part of
-- a constraint that every start needs.
--
-- In a script a key is a table {name, number: of its constraint, limit: of it, or false where it was removed, in_use:
-- units taken, hold_ms: closed until then by a hold, opens_ms: closed until then for lack of room under the rate,
-- last_ms: the latest start, timer_ms: in keys.OPENING with this time or an earlier one, queues: in which it holds or
-- held lanes (module limits.parking), as they are stored, is_changed, is_new: it has no record, raw: the stored record,
-- or false}.
local batch = require "jqlua.base.batch"
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local memory = require "jqlua.base.memory"
local meta = require "jqlua.base.meta"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

local FORMAT = ">I4dddd"
local HEADER = 36
M.QUEUE = ">I2c0" -- each of those behind the header
local LIMIT = ">ddd"

-- Keys that this call has read, by name.
M.keys = {}

-- Keys of earlier calls, by name: used again while what is stored is what they say.
local known = KEPT

-- Limits by their records.
local known_limits = KEPT

local function limit_key(number)
  return keys.LIMIT .. string.format("%d", number)
end

local function decode_limit(raw)
  local concurrency, rate, period_ms, at = struct.unpack(LIMIT, raw)
  return memory.keep(known_limits, raw, {
    concurrency = concurrency, rate = rate, period_ms = period_ms, id = raw:sub(at),
  })
end

---@param raw string|false
---@return table|false limit {concurrency, rate: starts in a period, both 0 for none, period_ms, id: of the constraint},
--- not to be changed; false if that was removed
local function limit_of(raw)
  return raw and (known_limits[raw] or decode_limit(raw))
end

---@return table|false limit as of limit_of
function M.limit(number)
  return limit_of(call("GET", limit_key(number)))
end

--- Other limits hold for keys that were read before, too.
local function replace_limit(number, raw)
  for _, key in next, M.keys do
    if key.number == number then
      key.limit = limit_of(raw)
    end
  end
end

--- Sets the limits of a constraint.
---@param definition table as module limits.constraints has it
function M.set_limit(definition)
  local period_ms = definition.p and math.ceil(definition.p * 1000) or 0
  local raw = struct.pack(LIMIT, definition.c or 0, definition.l or 0, period_ms) .. definition.i
  replace_limit(definition.n, raw)
  call("SET", limit_key(definition.n), raw)
end

--- Removes the limits of a removed constraint.
function M.delete_limit(number)
  replace_limit(number, false)
  call("UNLINK", limit_key(number))
end

local function decode(name, number, raw)
  local key = {
    name = name, number = number, limit = false, in_use = 0, hold_ms = 0, opens_ms = 0, last_ms = 0, timer_ms = 0,
    queues = "", is_changed = false, is_new = not raw, raw = raw,
  }
  if raw then
    key.in_use, key.hold_ms, key.opens_ms, key.last_ms, key.timer_ms = struct.unpack(FORMAT, raw)
    key.queues = raw:sub(HEADER + 1)
  end
  return memory.keep(known, name, key)
end

---@param raw string|false its record
---@param raw_limit string|false that of its constraint's limits
---@return table key
local function open(name, number, raw, raw_limit)
  local key = known[name]
  if not key or not raw or key.raw ~= raw or key.is_changed then -- it changed in a call that failed
    key = decode(name, number, raw)
  end
  key.limit = limit_of(raw_limit)
  M.keys[name] = key
  return key
end

--- Records of keys, and of their limits.
---@param entries table[] of units
---@return (string|false)[] raws one of each by turns
local function read(entries)
  local wanted = { false, false }
  for i = 1, #entries do
    local entry = entries[i]
    wanted[2 * i - 1], wanted[2 * i] = keys.KEY .. entry[job_units.NAME], keys.LIMIT .. entry[job_units.DIGITS]
  end
  return call("MGET", unpack(wanted))
end

--- The keys of a job's entries: those that this call does not know are read in one command.
---@param entries table[] of units
---@return table[] keys
function M.of(entries)
  local found, raws = {}, nil
  for i = 1, #entries do
    local entry = entries[i]
    local name = entry[job_units.NAME]
    local key = M.keys[name]
    if not key then
      raws = raws or read(entries)
      key = open(name, entry[job_units.NUMBER], raws[2 * i - 1], raws[2 * i])
    end
    found[i] = key
  end
  return found
end

---@param number number of the constraint
---@param value string
---@return table key
function M.load(number, value)
  return M.load_named(string.format("%d:", number) .. value)
end

---@return table key
function M.load_named(name)
  local number = job_units.split_name(name)
  return M.keys[name] or open(name, number, unpack(call("MGET", keys.KEY .. name, limit_key(number))))
end

--- Reads keys of one constraint in one command.
---@param values string[] not empty
---@return table[] keys in the same order
function M.load_all(number, values)
  local entries = {}
  for i, value in ipairs(values) do
    entries[i] = job_units.entry(number, value)
  end
  return M.of(entries)
end

---@return string value that names the key
local function value_of(key)
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

--- Removes an unused key.
function M.forget(key)
  key.hold_ms, key.opens_ms, key.last_ms, key.timer_ms, key.raw = 0, 0, 0, 0, false
  if not key.is_new then
    call("UNLINK", keys.KEY .. key.name, keys.STARTS .. key.name)
    call("ZREM", keys.KEYS_OF .. key.number, value_of(key))
    call("ZREM", keys.OPENING, key.name)
    key.is_new = true
  end
end

--- A queue as keys have it. No name has a zero byte, so that what begins with one is found in a list of these.
---@param name string
---@return string
function M.packed(name)
  return struct.pack(M.QUEUE, #name, name)
end

--- Buffers a key for the next flush.
function M.save(key)
  key.raw = struct.pack(FORMAT, key.in_use, key.hold_ms, key.opens_ms, key.last_ms, key.timer_ms) .. key.queues
  batch.write(keys.KEY .. key.name, key.raw)
  if key.is_new then
    call("ZADD", keys.KEYS_OF .. key.number, "0", value_of(key))
    key.is_new = false
  end
end

return M
