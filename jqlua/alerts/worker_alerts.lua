-- Alerts about workers that cannot be reached, and those that died with jobs.
local alerts = require "jqlua.alerts.alerts"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local unregistered = require "jqlua.workers.unregistered"
local wording = require "jqlua.alerts.wording"
local workers = require "jqlua.workers.workers"

local M = {}

local DEAD_MS = 900000 -- so long it is told that a worker died

--- A registered worker.
---@param id string
function M.check(id)
  local record = redis.call("ZSCORE", keys.RESTING, id) and workers.load(id)
  if record and record.u and record.w == "unreachable" then -- one that pulls has no address
    alerts.add({
      kind = "unreachable", level = alerts.WARNING, worker = id,
      since_ms = tonumber(redis.call("ZSCORE", keys.ALIVE, id)),
      text = string.format("Worker %s cannot be reached%s", wording.name(record.n),
        record.u and " at " .. workers.shown_url(record.u) or ""),
      advice = "See whether it runs, and whether the servers' hosts can reach that address.",
      values = { name = record.n },
    })
  end
end

--- One that announced itself, or died.
---@param id string
function M.check_other(id)
  local worker = unregistered.document(id)
  local lost = worker and (worker.lost and #worker.lost or worker.held) or 0
  if worker and worker.state == "gone" and lost > 0 and meta.state[meta.NOW_MS] - worker.seen_ms < DEAD_MS then
    alerts.add({
      kind = "worker_died", level = alerts.WARNING, worker = id, since_ms = worker.seen_ms,
      text = string.format("Worker %s died, or lost its network, with %s", wording.name(worker.name),
        wording.count(lost, "job")),
      advice = "See its log and its host. Its jobs run again once their leases are over.",
      values = { name = worker.name, host = worker.host },
    }, lost)
  end
end

return M
