-- The namespace's own key: one string, so that a script learns all it needs with one GET.
-- Header: schema, number of channels with sleepers, which ended jobs are not kept at all, the next moment
-- anything is due (a lower bound), the number of the last id. Then the settings (module settings).
local keys = require "jqlua.keys"
local clock = require "jqlua.clock"

local M = {}

M.SCHEMA = 1
M.FORMAT = ">I2I2Bdd"
M.HEADER_SIZE = 21
local SLEEPERS_OFFSET = 2
M.DROP_OFFSET = 4
local DUE_OFFSET = 5
M.NONE = math.huge

-- raw, now_ms, sleepers, drop (1 done, 2 error, 4 cancelled), next_due, seq
M.state = {}

---@cold
local function refusal(raw, schema)
  if #KEYS ~= 2 or KEYS[2] ~= (KEYS[1] or "") .. ":meta" then
    return "INVALID KEYS: expected exactly two keys, <namespace> and <namespace>:meta"
  end
  if not raw then
    return "VERSION namespace " .. KEYS[1] .. " is not set up: load the scripts, or run setup"
  end
  return "VERSION namespace " .. KEYS[1] .. " holds data of schema " .. tostring(schema)
    .. ", these scripts know " .. M.SCHEMA .. ": use scripts of its version"
end

--- Reads clock and header. First call of every script.
---@return string? problem the error to reply with
function M.open()
  local raw = redis.call("GET", keys.META)
  if not raw or #raw < M.HEADER_SIZE or KEYS[2] ~= keys.META or #KEYS ~= 2 then
    return refusal(raw, "unknown")
  end
  local schema, sleepers, drop, next_due, seq = struct.unpack(M.FORMAT, raw)
  if schema ~= M.SCHEMA then
    return refusal(raw, schema)
  end
  local state = M.state
  state.raw, state.sleepers, state.drop, state.next_due, state.seq = raw, sleepers, drop, next_due, seq
  state.saved_due, state.saved_seq = next_due, seq
  state.now_ms = clock.now()
end

--- Writes back what changed of due moment and id number.
function M.save()
  local state = M.state
  if state.next_due ~= state.saved_due or state.seq ~= state.saved_seq then
    redis.call("SETRANGE", keys.META, DUE_OFFSET, struct.pack(">dd", state.next_due, state.seq))
    state.saved_due, state.saved_seq = state.next_due, state.seq
  end
end

---@param count number how many channels have sleepers
function M.save_sleepers(count)
  M.state.sleepers = count
  redis.call("SETRANGE", keys.META, SLEEPERS_OFFSET, struct.pack(">I2", count))
end

---@return number ms for how long nothing becomes ready by time alone; -1 when nothing is planned
function M.next_ms()
  local state = M.state
  if state.next_due == M.NONE then
    return -1
  end
  local left = state.next_due - state.now_ms
  return left > 0 and left or 0
end

return M
