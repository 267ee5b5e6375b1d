-- Alerts about jobs that wait for one that failed, by the root of the chain.
local alerts = require "jqlua.alerts.alerts"
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"
local wording = require "jqlua.alerts.wording"

local M = {}

local call = redis.call

local MOST = 20 -- blocked jobs of a queue, from whose chains the roots are found
local DEPTH = 20
local MOST_OTHERS = 5 -- of what a job waits for

--- The ended job at the root of a chain.
---@return table? job
local function root_of(id, looked, depth)
  for _, other_id in ipairs(depth > 0 and call("ZRANGE", keys.WAITS_FOR .. id, 0, MOST_OTHERS - 1) or {}) do
    if not looked[other_id] then
      looked[other_id] = true
      local other = jobs.read(other_id)
      budget.pay(budget.LOOK)
      local state = other and other[jobs.STATE]
      if state == states.ERROR or state == states.CANCELLED then
        return other
      end
      local root = state == states.BLOCKED and root_of(other_id, looked, depth - 1)
      if root then
        return root
      end
    end
  end
end

---@param queue table with blocked jobs
function M.check(queue)
  local roots, counts, looked = {}, {}, {}
  for _, id in ipairs(call("ZRANGE", queues.key(queue, states.BLOCKED), 0, MOST - 1)) do
    local root = root_of(id, looked, DEPTH)
    if root and not counts[root[jobs.ID]] then
      roots[#roots + 1] = root
      counts[root[jobs.ID]] = call("ZCARD", keys.DEPENDENTS .. root[jobs.ID])
    end
  end
  for _, root in ipairs(roots) do
    local state = root[jobs.STATE] == states.ERROR and "failed" or "was cancelled"
    local count = counts[root[jobs.ID]]
    alerts.add({
      kind = "blocked", level = alerts.WARNING, queue = root[jobs.QUEUE], job = root[jobs.ID],
      since_ms = root[jobs.ENDED_MS],
      text = string.format("Job %s (%s) %s, and %s for it", root[jobs.ID], wording.name(root[jobs.NAME]), state,
        wording.waiting(count)),
      advice = "Retry it, or cancel what waits for it.", values = { name = root[jobs.NAME], waiting = count },
    }, count)
  end
end

return M
