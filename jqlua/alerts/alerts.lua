-- Alerts: what is wrong now, each as a document with a sentence; and how sentences have numbers, times and names.
local meta = require "jqlua.base.meta"

local M = {}

M.NEW_MS = 3600000
local MOST_JOBS = 999999

local WARNING = 1 -- somebody should look
local PROBLEM = 2 -- jobs do not run, or fail
local LEVELS = { "warning", "problem" }

-- Kind, level, what to do. Within a level causes come before what follows from them.
local KINDS = {
  { "unswept", PROBLEM, "Start a server or a worker." },
  { "path", PROBLEM, "See the argument of one of them: the path has to lead to a value there." },
  { "hung", PROBLEM, "Look at what it waits for; take its jobs from it, then restart it." },
  { "unserved", PROBLEM, "Start a worker for it, or see whether its workers name another queue." },
  { "unknown_job", PROBLEM, "Start a worker of a program that has it, or cancel them." },
  { "failing", PROBLEM, "See what changed, such as a deploy; once that is mended, retry the failures." },
  { "new_failures", PROBLEM, "See its newest jobs; once the cause is mended, retry them." },
  { "stopped", PROBLEM, "See what its workers do, and their logs." },
  { "full", PROBLEM, "Start more workers for it, or raise its max_waiting." },
  { "worker_died", WARNING, "See its log and its host. Its jobs run again once their leases are over." },
  { "unreachable", WARNING, "See whether it runs, and whether the servers' hosts can reach that address." },
  { "late", PROBLEM, "Start more workers for it, give them more slots, or raise the limit that holds it. "
    .. "Where one value floods it: share the queue fairly by its path, or cancel the jobs that have it." },
  { "lapsed", WARNING,
    "A worker died, hung or lost its network, or a job ran for its max_runtime: see the workers' logs." },
  { "blocked", WARNING, "Retry it, or cancel what waits for it." },
  { "paused", WARNING, "Resume it when its jobs may start." },
}

local found = {}

--- Reports what is wrong.
---@param kind string
---@param jobs number? how many are concerned
---@param about table {since_ms?, is_minor?: it is a warning alone}; and what it is about: queue, worker, constraint,
--- job or group
---@param text string as of string.format, for what follows
function M.add(kind, jobs, about, text, ...)
  local place = 1
  while KINDS[place][1] ~= kind do
    place = place + 1
  end
  local level = about.is_minor and WARNING or KINDS[place][2]
  local is_new = about.since_ms and meta.state[meta.NOW_MS] - about.since_ms < M.NEW_MS
  -- How much it matters: its level, whether it is new, its kind, and how many jobs it concerns.
  local weight = (level * 2 + (is_new and 1 or 0)) * 1000 - place
  about.is_minor = nil
  about.kind, about.level, about.jobs, about.advice = kind, LEVELS[level], jobs, KINDS[place][3]
  about.weight = weight * (MOST_JOBS + 1) + math.min(jobs or 0, MOST_JOBS)
  about.text = text:format(...)
  found[#found + 1] = about
end

--- What was found in this call, the worst first.
---@return string[] maps
function M.encode()
  table.sort(found, function(a, b)
    return a.weight > b.weight or a.weight == b.weight and a.text < b.text
  end)
  local encoded = {}
  for i, alert in ipairs(found) do
    encoded[i] = cmsgpack.pack(alert)
  end
  return encoded
end

-- Wording -------------------------------------------------------------------------------------------------------------

local UNITS = { { 86400, "d" }, { 3600, "h" }, { 60, "min" } }

--- A duration in its largest unit of which there are two.
---@param ms number
---@return string
function M.span(ms)
  local seconds = math.floor(ms / 1000 + 0.5)
  if ms < 1000 then
    return string.format("%.0f ms", ms)
  end
  for _, unit in ipairs(UNITS) do
    if seconds >= 2 * unit[1] then
      return string.format("%d %s", math.floor(seconds / unit[1]), unit[2])
    end
  end
  return string.format("%d s", seconds)
end

--- So many of something, with commas between thousands.
---@param what string in the singular, which `s` makes plural
---@return string
function M.count(value, what)
  local text, count = string.format("%.0f", value), 1
  while count > 0 do
    text, count = text:gsub("^(%d+)(%d%d%d)", "%1,%2")
  end
  return text .. " " .. what .. (value == 1 and "" or "s")
end

--- How many jobs wait.
---@return string
function M.waiting(value)
  return M.count(value, "job") .. (value == 1 and " waits" or " wait")
end

---@param share number
---@return string
function M.percent(share)
  local percent = share * 100
  return string.format(percent > 0 and percent < 10 and "%.1f %%" or "%.0f %%", percent)
end

--- A name in a sentence: quoted where blanks could be overlooked.
---@return string
function M.name(text)
  local is_odd = text:find("^%s") or text:find("%s$") or text:find("  ", 1, true)
  return is_odd and '"' .. text .. '"' or text
end

return M
