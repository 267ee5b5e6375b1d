-- Alerts about workers that cannot be reached, and those that died with jobs.
local alerts = require "jqlua.alerts.alerts"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local listed = require "jqlua.workers.listed"
local wording = require "jqlua.alerts.wording"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

local DEAD_MS = 900000 -- so long it is told that a worker died

local function add_unreachable(id, worker)
  alerts.add({
    kind = "unreachable", level = alerts.WARNING, worker = id, since_ms = tonumber(call("ZSCORE", keys.ALIVE, id)),
    text = string.format("Worker %s cannot be reached at %s", wording.name(worker.n), workers.shown_url(worker.u)),
    advice = "See whether it runs, and whether the servers' hosts can reach that address.",
    values = { name = worker.n },
  })
end

---@param lost number of jobs
local function add_died(id, worker, lost)
  alerts.add({
    kind = "worker_died", level = alerts.WARNING, worker = id, since_ms = worker.t,
    text = string.format("Worker %s died, or lost its network, with %s", wording.name(worker.n),
      wording.count(lost, "job")),
    advice = "See its log and its host. Its jobs run again once their leases are over.",
    values = { name = worker.n, host = worker.h },
  }, lost)
end

---@param id string
function M.check(id)
  local worker = workers.load(id)
  if worker then
    if worker.u and worker.w == "unreachable" and call("ZSCORE", keys.RESTING, id) then -- one that pulls has no address
      add_unreachable(id, worker)
    end
    return
  end
  worker = listed.load(id)
  if worker and listed.is_gone(worker) and meta.state[meta.NOW_MS] - worker.t < DEAD_MS then
    local lost = worker.d and #(worker.x or {}) or #listed.running(worker)
    if lost > 0 then
      add_died(id, worker, lost)
    end
  end
end

return M
