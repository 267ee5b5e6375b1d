-- A namespace's settings: numbers behind meta's header, in this order.
local meta = require "jqlua.meta"

local M = {}

local DOUBLE = 8
local FIRST = meta.HEADER_SIZE + 1

-- Places, for those who need one setting only.
M.RETRY = FIRST -- base, cap, jitter
M.RESULT_TTL = FIRST + 3 * DOUBLE
M.RESULT_GRACE = FIRST + 4 * DOUBLE
M.REQUEST_TTL = FIRST + 5 * DOUBLE
M.DONE = FIRST + 6 * DOUBLE -- ttl, max
M.ERROR = FIRST + 8 * DOUBLE
M.CANCELLED = FIRST + 10 * DOUBLE
M.CANCEL_RUNNING = FIRST + 12 * DOUBLE
M.WORKER_TTL = FIRST + 13 * DOUBLE

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
}

---@return number value of the setting at that place
function M.at(place)
  return (struct.unpack(">d", meta.state[meta.RAW], place))
end

---@return number base_s, number cap_s, number jitter
function M.retry()
  local base, cap, jitter = struct.unpack(">ddd", meta.state[meta.RAW], M.RETRY)
  return base, cap, jitter
end

--- How long, and how many of a queue, records of an ended state are kept.
---@param letter string d, e or c
---@return number ttl_s, number max
function M.retention(letter)
  local place = letter == "d" and M.DONE or letter == "e" and M.ERROR or M.CANCELLED
  local ttl_s, max = struct.unpack(">dd", meta.state[meta.RAW], place)
  return ttl_s, max
end

--- Which ended jobs are dropped at once, as meta's header has it.
---@param values table by name
---@return number
function M.drop_flags(values)
  local function dropped(ttl, max)
    return (ttl == 0 or max == 0) and 1 or 0
  end
  return dropped(values.done_ttl, values.done_max) + 2 * dropped(values.error_ttl, values.error_max)
    + 4 * dropped(values.cancelled_ttl, values.cancelled_max)
end

return M
