-- Alerts about what is no queue: constraints whose paths lead nowhere, workers that cannot be reached or died with
-- jobs, groups of failures that are new, and that nobody sweeps.
local alerts = require "jqlua.alerts.alerts"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local constraintdoc = require "jqlua.limits.constraintdoc"
local constraints = require "jqlua.limits.constraints"
local failure_groups = require "jqlua.links.failure_groups"
local keyrecord = require "jqlua.limits.keyrecord"
local keys = require "jqlua.base.keys"
local listed = require "jqlua.workers.listed"
local meta = require "jqlua.base.meta"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

local NOWHERE = "n" -- the value of a path that leads nowhere
local MOST_LANES = 100

--- Jobs are held under the key of those in which no path of a constraint leads anywhere: they share it.
function M.check_constraint(id)
  local definition = constraints.load(id)
  if not definition or not definition.b then
    return
  end
  local values = {}
  for i in ipairs(definition.b) do
    values[i] = NOWHERE
  end
  local key = keyrecord.load(definition.n, constraints.join(values))
  local held = key.queues[1] and constraintdoc.held_by(key, nil, MOST_LANES).jobs or 0
  budget.pay(budget.STEP)
  if held > 0 then
    local path = type(definition.bg) == "table" and table.concat(definition.bg, ", ") or definition.bg
    alerts.add("path", held + key.in_use, { constraint = id }, "Limit %s: %s leads nowhere in %s, which share one key",
      alerts.name(id), path, alerts.count(held + key.in_use, "job"))
  end
end

local DEAD_MS = 900000 -- so long it is told that a worker died

function M.check_worker(id)
  local worker = workers.load(id)
  if worker then
    if worker.u and worker.w == "unreachable" and workers.is_resting(id) then -- one that pulls has no address
      alerts.add("unreachable", nil, { worker = id, since_ms = tonumber(call("ZSCORE", keys.ALIVE, id)) },
        "Worker %s cannot be reached at %s", alerts.name(worker.n), workers.shown_url(worker.u))
    end
    return
  end
  worker = listed.load(id)
  if worker and listed.is_gone(worker) and meta.state[meta.NOW_MS] - worker.t < DEAD_MS then
    local lost = worker.d and #(worker.x or {}) or #listed.running(worker)
    if lost > 0 then
      alerts.add("worker_died", lost, { worker = id, since_ms = worker.t },
        "Worker %s died, or lost its network, with %s", alerts.name(worker.n), alerts.count(lost, "job"))
    end
  end
end

local NEW_MS = 3600000
local RECENT_MS = 600000
local FEW = 3
local MANY = 50

--- A group of failures is new, and grows.
function M.check_failures(group)
  local shown, now = failure_groups.look(group), meta.state[meta.NOW_MS]
  if not shown or shown.count < FEW or shown.last_ms < now - RECENT_MS or now - shown.first_ms >= NEW_MS then
    return
  end
  local message = check.message(shown.message:match("^%s*([^\n]*)"), 120)
  alerts.add("new_failures", shown.count, { group = group, since_ms = shown.first_ms, is_minor = shown.count < MANY },
    "New failure %s: %s within %s%s", alerts.name(group), alerts.count(shown.count, "job"),
    alerts.span(math.max(1000, now - shown.first_ms)), message ~= "" and ". The newest says: " .. message or "")
end

-- What is due is done within this time where anybody sweeps.
local PATIENCE_MS = 10000

function M.check_sweeps()
  local late_ms = meta.state[meta.NOW_MS] - PATIENCE_MS
  local first = call("ZRANGEBYSCORE", keys.DUE, 1, late_ms, "WITHSCORES", "LIMIT", 0, 1)
  if first[1] then
    alerts.add("unswept", nil, { since_ms = tonumber(first[2]) },
      "Nothing sweeps: leases that ended, retries and schedules that are due are not seen to")
  end
end

return M
