-- The settings there are, and how clients set and read them.
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local jobpath = require "jqlua.values.jobpath"
local meta = require "jqlua.base.meta"

local M = {}

-- What only queues have, and as text: what of a job decides in which partition of a cluster it is.
local ROUTE = "route"

-- In the order of storage, as module settings.settings names their places: name, default, least, most, type, whether a
-- queue may have its own, unit, meaning.
local ALL = {
  { "retry_base", 1, 0, 1e10, "number", true, "seconds",
    "backoff after the first failure; twice that after the next, and so on" },
  { "retry_cap", 3600, 0, 1e10, "number", true, "seconds", "the longest backoff" },
  { "retry_jitter", 0.1, 0, 1, "number", true, "", "up to this part of a backoff is taken off at random" },
  { "result_ttl", 3600, 1, 1e10, "number", true, "seconds", "how long an unread result is kept" },
  { "result_grace", 60, 0, 1e10, "number", true, "seconds", "how long a result is kept after its first read" },
  { "request_ttl", 600, 1, 86400, "number", false, "seconds", "how long a request token is remembered" },
  { "done_ttl", 86400, 0, 1e10, "number", true, "seconds", "how long records of done jobs are kept; 0: not at all" },
  { "done_max", 10000, 0, 1e9, "integer", true, "jobs",
    "how many records of done jobs are kept for each queue; 0: none" },
  { "error_ttl", 2592000, 0, 1e10, "number", true, "seconds",
    "how long records of jobs that failed for good are kept; 0: not at all" },
  { "error_max", 10000, 0, 1e9, "integer", true, "jobs",
    "how many records of jobs that failed for good are kept for each queue; 0: none" },
  { "cancelled_ttl", 86400, 0, 1e10, "number", true, "seconds",
    "how long records of cancelled jobs are kept; 0: not at all" },
  { "cancelled_max", 10000, 0, 1e9, "integer", true, "jobs",
    "how many records of cancelled jobs are kept for each queue; 0: none" },
  { "cancel_running", 1, 0, 1, "boolean", false, "", "whether cancel may take a running job without force" },
  { "worker_ttl", 30, 1, 86400, "number", false, "seconds",
    "after so long without a sign of life a registered worker is dead" },
  { "events_max", 0, 0, 1e7, "integer", false, "events",
    "about how many events are kept in the stream; 0: none are written" },
  { "stats", 1, 0, 1, "boolean", false, "", "whether statistics are counted" },
  { "trail_max", 10000, 0, 1e6, "integer", false, "entries", "how much of what operators changed is kept; 0: nothing" },
  { "late_after", 10, 1, 1e10, "number", true, "seconds",
    "how long a ready job may wait before it is late; more where its queue's usually do" },
}

local FORMAT = ">" .. ("d"):rep(#ALL)
M.BYTES = struct.size(FORMAT)

--- The fields that `set` may have.
---@param of_queues boolean whether only those that a queue may have
---@return table<string, table> fields
---@return table<string, number> places
---@return string names separated by blanks
local function known(of_queues)
  local settable, places, names = {}, {}, {}
  for i, setting in ipairs(ALL) do
    local name, _, least, most, kind, is_own = unpack(setting)
    if not of_queues or is_own then
      settable[name], places[name] = { kind == "boolean" and "flag" or kind, least, most }, i
      names[#names + 1] = name
    end
  end
  if of_queues then
    settable[ROUTE], places[ROUTE], names[#names + 1] = { "path" }, ROUTE, ROUTE
  end
  return settable, places, table.concat(names, " ")
end

--- Changes settings as the fields `set` and `unset` say; refuses the call if they are wrong.
---@param of_queues boolean whether only what a queue may have is known
---@param values table<number, number> by place, to change
function M.change(spec, of_queues, values)
  local settable, places, names = known(of_queues)
  fields.check(spec.set or {}, settable, "set")
  for name, value in pairs(spec.set or {}) do
    if name == ROUTE and value ~= "queue" then
      jobpath.parse(value, "set.route", true)
    end
    values[places[name]] = value == true and 1 or value ~= false and value or 0
  end
  for i, name in ipairs(spec.unset or {}) do
    local path = "unset[" .. i - 1 .. "]"
    fields.check_value(name, { "choice", words = names }, "", path)
    check.refuse(spec.set and spec.set[name] ~= nil
      and "INVALID " .. path .. ": " .. name .. " is set in the same call")
    values[places[name]] = not of_queues and ALL[places[name]][2] or nil
  end
end

---@return number[] by place
function M.defaults()
  local values = {}
  for i, setting in ipairs(ALL) do
    values[i] = setting[2]
  end
  return values
end

--- All settings of the namespace.
---@return number[] by place
function M.current()
  local values = { struct.unpack(FORMAT, meta.state[meta.RAW], meta.SETTINGS_OFFSET + 1) }
  values[#ALL + 1] = nil -- the position behind them
  return values
end

---@param values number[] of all
---@return string bytes as meta has them
function M.packed(values)
  return struct.pack(FORMAT, unpack(values))
end

---@param place number
---@param value number as stored
---@return number|boolean value as clients know it
local function shown(place, value)
  if place ~= ROUTE and ALL[place][5] == "boolean" then
    return value ~= 0
  end
  return value
end

--- The values as clients see them.
---@param values table<number, number> by place
---@return table by name
function M.show(values)
  local named = {}
  for place, value in pairs(values) do
    named[place == ROUTE and ROUTE or ALL[place][1]] = shown(place, value)
  end
  return named
end

--- Flags of meta for settings that every call needs.
---@param named table as show gives all
---@return number
function M.flags(named)
  local sum = 0
  for flag, is_set in pairs({
    [meta.NO_DONE] = named.done_ttl == 0 or named.done_max == 0,
    [meta.NO_ERROR] = named.error_ttl == 0 or named.error_max == 0,
    [meta.NO_CANCELLED] = named.cancelled_ttl == 0 or named.cancelled_max == 0,
    [meta.HAS_EVENTS] = named.events_max > 0, [meta.UNCOUNTED] = not named.stats,
  }) do
    sum = sum + (is_set and flag or 0)
  end
  return sum
end

--- Describes each setting.
---@param values number[] by place
---@return table[]
function M.describe(values)
  local documents = {}
  for i, setting in ipairs(ALL) do
    local name, default, least, most, kind, is_own, unit, meaning = unpack(setting)
    local is_number = kind ~= "boolean"
    documents[i] = {
      name = name, value = shown(i, values[i]), default = shown(i, default), type = kind, unit = unit,
      meaning = meaning, queues = is_own, least = is_number and least or nil, most = is_number and most or nil,
    }
  end
  return documents
end

return M
