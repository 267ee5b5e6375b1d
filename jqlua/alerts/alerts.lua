-- Alerts: what is wrong now, each as a document with a sentence. What finds them are the modules beside this one, each
-- for things of one sort.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

local NEW_MS = 3600000
local MOST_JOBS = 999999

M.PROBLEM = "problem" -- jobs do not run, or fail
M.WARNING = "warning" -- somebody should look
local LEVELS = { warning = 1, problem = 2 }

-- Within a level causes come before what follows from them.
local KINDS = "unswept path hung unserved unknown_job failing new_failures stopped full worker_died unreachable late "
  .. "lapsed blocked paused "

local found = {}

--- How much an alert matters: by its level, whether it is new, its kind, and how many jobs it concerns.
local function weight_of(alert, jobs)
  local since_ms = alert.since_ms
  local is_new = since_ms and meta.state[meta.NOW_MS] - since_ms < NEW_MS
  local rank = LEVELS[alert.level] * 2 + (is_new and 1 or 0)
  return (rank * 1000 - KINDS:find(alert.kind .. " ", 1, true)) * (MOST_JOBS + 1) + math.min(jobs or 0, MOST_JOBS)
end

--- Reports what is wrong.
---@param alert table {kind, level, text, advice, since_ms?, values: numbers and names behind the text}; and what it is
--- about: queue, worker, constraint, job or group
---@param jobs? number that are concerned
function M.add(alert, jobs)
  alert.weight, alert.jobs = weight_of(alert, jobs), jobs
  alert.values = next(alert.values or {}) and alert.values or nil
  found[#found + 1] = alert
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

-- What is due is done within this time where anybody sweeps.
local PATIENCE_MS = 10000

--- Whether anybody sweeps.
function M.check_sweeps()
  local late_ms = meta.state[meta.NOW_MS] - PATIENCE_MS
  local first = redis.call("ZRANGEBYSCORE", keys.DUE, 1, late_ms, "WITHSCORES", "LIMIT", 0, 1)
  if first[1] then
    M.add({
      kind = "unswept", level = M.PROBLEM, since_ms = tonumber(first[2]),
      text = "Nothing sweeps: leases that ended, retries and schedules that are due are not seen to",
      advice = "Start a server or a worker.",
    })
  end
end

return M
