-- Settings as clients set and read them.
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
  lease_grace = { "seconds", "how long after the end of its lease a job is handed on; until then its worker may still "
    .. "renew or finish it", true },
  events_max = { "events", "about how many events are kept in the stream; 0: none are written", false },
  stats = { "", "whether statistics are counted", false },
  trail_max = { "entries", "how much of what operators changed is kept; 0: nothing", false },
  queues_max = { "queues", "how many queues there may be before a new one is refused", false },
  names_max = { "names", "how many pairs of queue and name statistics may know before a job of a new one is refused",
    false },
  tags_max = { "tags", "how many tags there may be before a new one is refused", false },
  keys_max = { "keys", "how many keys of a constraint may be in use before a job under another is refused", false },
  all_keys_max = { "keys", "the same of all constraints", false },
  late_after = { "seconds", "how long a ready job may wait before it is late; more where its queue's usually do",
    true },
}

---@return string? expected if the value is invalid
local function expected(setting, value)
  local least, most, kind = setting[3], setting[4], setting[5]
  if kind == "boolean" then
    return type(value) ~= "boolean" and "true or false" or nil
  end
  local is_right, what = check.is_number(value, least, most), "a number"
  if kind == "integer" then
    is_right, what = check.is_integer(value, least, most), "an integer"
  end
  return not is_right and string.format("%s from %.0f to %.0f", what, least, most) or nil
end

--- The places of settings by name.
---@param of_queues boolean whether only those that a queue may have
---@return table<string, number> places
---@return string names separated by blanks
local function known(of_queues)
  local places, names = {}, {}
  for i, setting in ipairs(settings.ALL) do
    local name = setting[1]
    if not of_queues or ABOUT[name][3] then
      places[name] = i
      names[#names + 1] = name
    end
  end
  if of_queues then
    places[ROUTE], names[#names + 1] = ROUTE, ROUTE
  end
  return places, table.concat(names, " ")
end

--- Checks `set`.
---@param of_queues boolean whether only what a queue may have is known
---@return table<number, number>? values by place
---@return string? problem
function M.parse(set, of_queues)
  local places, names = known(of_queues)
  if type(set) ~= "table" then
    return nil, check.problem("set", "a map of settings", set)
  end
  local values = {}
  for name, value in pairs(set) do
    local place = places[name]
    if not place then
      return nil, check.unknown("set", name, names)
    end
    local problem
    if place == ROUTE then
      problem = value ~= "queue" and select(2, jobpath.parse(value, "set.route", true))
    else
      local wrong = expected(settings.ALL[place], value)
      problem = wrong and check.problem("set." .. name, wrong, value)
    end
    if problem then
      return nil, problem
    end
    values[place] = value == true and 1 or value ~= false and value or 0
  end
  return values
end

--- Checks `unset`: names of settings.
---@param set? table what is set in the same call
---@param of_queues boolean whether only what a queue may have is known
---@return number[]? places
---@return string? problem
function M.parse_unset(unset, set, of_queues)
  local places, names = known(of_queues)
  if not check.is_list(unset, 0, 100) then
    return nil, check.problem("unset", "a list of names of settings", unset)
  end
  local gone = {}
  for i, name in ipairs(unset) do
    local field = "unset[" .. i - 1 .. "]"
    if not places[name] then
      return nil, check.problem(field, "one of " .. names:gsub(" ", ", "), name)
    elseif set and set[name] ~= nil then
      return nil, "INVALID " .. field .. ": " .. name .. " is set in the same call"
    end
    gone[i] = places[name]
  end
  return gone
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
    values[i] = settings.value(i)
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
