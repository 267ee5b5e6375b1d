-- The namespace's own key: one string, so that a script learns all it needs with one read.
-- Header: schema, number of channels with sleepers, flags (which ended jobs are not kept at all, ...), the next moment
-- anything is due (a lower bound), the version of the set of constraints, the version in which one was last added, the
-- secret that tokens are made with. Then the settings (module settings.settings).
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local clock = require "jqlua.base.clock"

local M = {}

M.SCHEMA = 11
M.FORMAT = ">I2I2BdI4I4c8"
local SLEEPERS_OFFSET = 2
local FLAGS_OFFSET = 4
M.SETTINGS_OFFSET = 29
local DUE_OFFSET = 5
local CONSTRAINTS_OFFSET = 13
M.NONE = math.huge

-- Flags.
M.NO_DONE = 1 -- done jobs leave no record
M.NO_ERROR = 2
M.NO_CANCELLED = 4
M.HAS_EVENTS = 8 -- events are written
M.UNCOUNTED = 16 -- statistics are off
M.HAS_OWN = 32 -- a queue has, or had, settings of its own
M.HAS_WEBHOOKS = 64 -- ends of some jobs are notified (module webhooks.registry)
local DROPS = 8 -- of those that leave no record

-- What this call knows of the namespace: a list of these.
M.NOW_MS = 1
M.NEXT_DUE = 2
M.SLEEPERS = 3 -- channels with sleepers
M.FLAGS = 4 -- their sum
M.RAW = 5
M.DUE_CHANGED = 6
M.TIMER_MOVED = 7
M.VERSION = 8 -- of the set of constraints; 0: there never was one
M.ADDED = 9 -- the version in which one was last added: jobs that waited then must be placed again
M.NOTED = 10 -- events of this call that are not written yet (module statistics.events), or false
M.TAGGED = 11 -- tags of jobs changed (module links.tags)
M.SECRET = 12
M.SECONDS = 13 -- the moment, as texts
M.MICROS = 14
M.RANDOM = 15 -- random part of this call's tokens, or false before the first
M.DROPPED = 16 -- sum of the flags of states that leave no record
M.EVENTS = 17 -- whether events are written
M.COUNTED = 18 -- whether statistics are kept
M.SPENT = 19 -- of the call's budget (module job.budget)
local KNOWN = 20 -- the encoded header; true, as none is, once something changed
M.NOTICED = 21 -- whether events are written or webhooks exist, so that any job's changes may matter to others
M.SERIAL = 22 -- the last serial number issued (module base.serial), or false if this call does not know it
M.ISSUED = 23 -- the same as digits, if this call issued it and that is not written yet, or false
M.state = {
  0, 0, 0, 0, "", false, false, 0, 0, false, false, "", "", "", false, 0, false, true, 0, true, false, false, false,
}

local function refusal(raw, schema)
  if #KEYS ~= 2 or KEYS[2] ~= (KEYS[1] or "") .. ":meta" then
    return "INVALID KEYS: expected exactly two keys, <namespace> and <namespace>:meta"
  end
  if not raw then
    return "VERSION namespace " .. KEYS[1] .. " is not set up: load the scripts, or run setup"
  end
  return "VERSION namespace " .. KEYS[1] .. " holds data of schema " .. tostring(schema)
    .. ", these scripts use " .. M.SCHEMA .. ": use scripts of that version"
end

--- Checks the keys of a call that may create the namespace.
---@return string? problem
function M.name_problem()
  if #KEYS == 2 and not string.find(KEYS[1], "^{[!-z|~]+}$") or #(KEYS[1] or "") > 66 then
    return "INVALID namespace: expected {tag}, the tag 1 to 64 printable ASCII characters other than braces and blanks"
  elseif #KEYS == 2 and KEYS[1]:find(":%*/%d+}$") then
    return "INVALID namespace: " .. KEYS[1] .. " names all partitions of a cluster"
  elseif #KEYS ~= 2 or KEYS[2] ~= keys.META then
    return refusal()
  end
end

---@param flag number
---@return boolean
function M.has(flag)
  return M.state[M.FLAGS] % (flag + flag) >= flag
end

local function set_flags(flags)
  local state = M.state
  state[M.FLAGS] = flags
  state[M.DROPPED], state[M.EVENTS] = flags % DROPS, flags % (2 * M.HAS_EVENTS) >= M.HAS_EVENTS
  state[M.COUNTED] = flags % (2 * M.UNCOUNTED) < M.UNCOUNTED
  state[M.NOTICED] = state[M.EVENTS] or flags >= M.HAS_WEBHOOKS
end

--- Writes other flags.
function M.save_flags(flags)
  set_flags(flags)
  M.state[KNOWN] = true
  redis.call("SETRANGE", keys.META, FLAGS_OFFSET, string.char(flags))
end

--- Reads the clock and the header. Must precede any write.
function M.open()
  local raw, state = redis.call("GET", keys.META), M.state
  if raw ~= state[KNOWN] or KEYS[2] ~= keys.META or KEYS[3] then
    if not raw or #raw < M.SETTINGS_OFFSET or KEYS[2] ~= keys.META or KEYS[3] then
      check.refuse(not raw and M.name_problem() or refusal(raw, "unknown"))
    end
    local schema, sleepers, flags, next_due, version, added, secret = struct.unpack(M.FORMAT, raw)
    if schema ~= M.SCHEMA then
      check.refuse(refusal(raw, schema))
    end
    set_flags(flags)
    state[M.SLEEPERS], state[M.NEXT_DUE], state[M.SECRET] = sleepers, next_due, secret
    state[M.VERSION], state[M.ADDED] = version, added
    state[M.DUE_CHANGED], state[M.TIMER_MOVED], state[M.NOTED], state[M.TAGGED] = false, false, false, false
    state[KNOWN], state[M.RAW] = raw, raw
  end
  state[M.NOW_MS], state[M.SECONDS], state[M.MICROS] = clock.now()
  state[M.RANDOM], state[M.SPENT], state[M.SERIAL], state[M.ISSUED] = false, 0, false, false
end

--- A secret that tokens are derived from, so that they cannot be guessed.
---@return string secret 8 bytes
function M.new_secret()
  local _, seconds, micros = clock.now()
  local info = redis.pcall("INFO", "server") -- run_id is random; optional, since the user may lack the right
  info = type(info) == "string" and info or ""
  local digest = redis.sha1hex(seconds .. "." .. micros .. " " .. KEYS[1] .. info)
  return check.from_hex(digest:sub(1, 16))
end

-- The last secret and second whose digest was computed, and the digest. The address of a function differs from process
-- to process: so no server repeats another's tokens.
local known_digest = { false, false, "" }

--- The random part of a token: never reused after a failover that lost writes, and not guessable.
---@return string random 12 hexadecimal digits, the same throughout a call
function M.random()
  local state = M.state
  local random = state[M.RANDOM]
  if not random then
    local secret, seconds = state[M.SECRET], state[M.SECONDS]
    if seconds ~= known_digest[2] or secret ~= known_digest[1] then
      known_digest[1], known_digest[2] = secret, seconds
      known_digest[3] = redis.sha1hex(secret .. seconds .. tostring(redis.call))
    end
    random = (known_digest[3] .. state[M.MICROS]):sub(-12)
    state[M.RANDOM] = random
  end
  return random
end

--- Changes a field of the header.
---@param field number
function M.set(field, value)
  M.state[field] = value
  M.state[KNOWN] = true
end

---@param at_ms number a lower bound of all that is due
function M.set_due(at_ms)
  M.set(M.NEXT_DUE, at_ms)
  M.set(M.DUE_CHANGED, true)
end

--- Writes the next due moment.
function M.save()
  M.state[M.DUE_CHANGED] = false
  redis.call("SETRANGE", keys.META, DUE_OFFSET, struct.pack(">d", M.state[M.NEXT_DUE]))
end

--- Writes the header's fields about constraints.
function M.save_constraints()
  local state = M.state
  redis.call("SETRANGE", keys.META, CONSTRAINTS_OFFSET,
    struct.pack(">I4I4", state[M.VERSION], state[M.ADDED]))
end

---@param count number how many channels have sleepers
function M.save_sleepers(count)
  M.set(M.SLEEPERS, count)
  redis.call("SETRANGE", keys.META, SLEEPERS_OFFSET, struct.pack(">I2", count))
end

---@return number ms until something becomes ready by time alone; -1 if nothing is scheduled
function M.next_ms()
  local state = M.state
  local left = state[M.NEXT_DUE] - state[M.NOW_MS]
  return left == M.NONE and -1 or left > 0 and left or 0
end

return M
