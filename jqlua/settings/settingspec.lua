-- Settings as clients set and read them.
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local jobpath = require "jqlua.values.jobpath"
local settings = require "jqlua.settings.settings"

local M = {}

-- What only queues have, and as text: what of a job decides in which partition of a cluster it is.
local ROUTE = "route"

--- name -> unit, meaning, whether a queue may have its own.
local ABOUT = {
  retry_base = { "seconds", "backoff after the first failure; twice that after the next, and so on", true },
  retry_cap = { "seconds", "the longest backoff", true },
  retry_jitter = { "", "up to this part of a backoff is taken off at random", true },
  result_ttl = { "seconds", "how long an unread result is kept", true },
  result_grace = { "seconds", "how long a result is kept after its first read", true },
  request_ttl = { "seconds", "how long a request token is remembered", false },
  done_ttl = { "seconds", "how long records of done jobs are kept; 0: not at all", true },
  done_max = { "jobs", "how many records of done jobs are kept for each queue; 0: none", true },
  error_ttl = { "seconds", "how long records of jobs that failed for good are kept; 0: not at all", true },
  error_max = { "jobs", "how many records of jobs that failed for good are kept for each queue; 0: none", true },
  cancelled_ttl = { "seconds", "how long records of cancelled jobs are kept; 0: not at all", true },
  cancelled_max = { "jobs", "how many records of cancelled jobs are kept for each queue; 0: none", true },
  cancel_running = { "", "whether cancel may take a running job without force", false },
  worker_ttl = { "seconds", "after so long without a sign of life a registered worker is dead", false },
  events_max = { "events", "about how many events are kept in the stream; 0: none are written", false },
  stats = { "", "whether statistics are counted", false },
  trail_max = { "entries", "how much of what operators changed is kept; 0: nothing", false },
  late_after = { "seconds", "how long a ready job may wait before it is late; more where its queue's usually do",
    true },
}

--- The fields that `set` may have.
---@param of_queues boolean whether only those that a queue may have
---@return table<string, table> fields
---@return table<string, number> places
---@return string names separated by blanks
local function known(of_queues)
  local settable, places, names = {}, {}, {}
  for i, setting in ipairs(settings.ALL) do
    local name, _, least, most, kind = unpack(setting)
    if not of_queues or ABOUT[name][3] then
      settable[name], places[name] = { kind == "boolean" and "flag" or kind or "number", least, most }, i
      names[#names + 1] = name
    end
  end
  if of_queues then
    settable[ROUTE], places[ROUTE], names[#names + 1] = { "path" }, ROUTE, ROUTE
  end
  return settable, places, table.concat(names, " ")
end

--- Checks the fields `set` and `unset`.
---@param of_queues boolean whether only what a queue may have is known
---@return table<number, number> set values by place
---@return number[] unset places
function M.parse(spec, of_queues)
  local settable, places, names = known(of_queues)
  local set, unset = {}, {}
  fields.check(spec.set or {}, settable, "set")
  for name, value in pairs(spec.set or {}) do
    if name == ROUTE and value ~= "queue" then
      jobpath.parse(value, "set.route", true)
    end
    set[places[name]] = value == true and 1 or value ~= false and value or 0
  end
  for i, name in ipairs(spec.unset or {}) do
    local path = "unset[" .. i - 1 .. "]"
    fields.check_value(name, { "choice", words = names }, "", path)
    check.refuse(spec.set and spec.set[name] ~= nil
      and "INVALID " .. path .. ": " .. name .. " is set in the same call")
    unset[i] = places[name]
  end
  return set, unset
end

---@param place number
---@param value number as stored
---@return number|boolean value as clients know it
local function shown(place, value)
  if place ~= ROUTE and settings.ALL[place][5] == "boolean" then
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
    named[place == ROUTE and ROUTE or settings.ALL[place][1]] = shown(place, value)
  end
  return named
end

--- All settings of the namespace.
---@return number[] by place
function M.current()
  local values = {}
  for i in ipairs(settings.ALL) do
    values[i] = settings.at(i)
  end
  return values
end

--- Describes each setting.
---@param values number[] by place
---@return table[]
function M.describe(values)
  local documents = {}
  for i, setting in ipairs(settings.ALL) do
    local name, default, least, most, kind = unpack(setting)
    local about = ABOUT[name]
    documents[i] = {
      name = name, value = shown(i, values[i]), default = shown(i, default), type = kind or "number",
      unit = about[1], meaning = about[2], queues = about[3],
    }
    if kind ~= "boolean" then
      documents[i].least, documents[i].most = least, most
    end
  end
  return documents
end

return M
