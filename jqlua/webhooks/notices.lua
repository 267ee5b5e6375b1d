-- Notifications: jobs that servers deliver to the URLs of webhooks. The call in which a job ends creates them, for its
-- own URL and for each webhook that matches it.
local budget = require "jqlua.job.budget"
local constraints = require "jqlua.limits.constraints"
local jobs = require "jqlua.job.jobs"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local registry = require "jqlua.webhooks.registry"
local serial = require "jqlua.base.serial"
local states = require "jqlua.job.states"

local M = {}

local MAX_RETRY = 20
local LEASE_MS = 30000
local NIL = "\192"

-- Why the next job fails; set before each failure.
local why = KEPT

--- Sets the reason for which the next job fails.
---@param message string its beginning
function M.set_reason(reason, message, group)
  why.reason, why.message, why.group = reason, message, group
end

--- The event of an end.
local function event_of(job, to)
  local event = {
    id = job[jobs.ID], name = job[jobs.NAME], queue = job[jobs.QUEUE], status = states.name(to),
    attempt = job[jobs.ATTEMPT], retry_count = job[jobs.FAILURES], created_ms = jobs.created_ms(job[jobs.ID]),
    ended_ms = meta.state[meta.NOW_MS],
  }
  if job[jobs.ATTEMPT] > 0 then
    event.started_ms = job[jobs.STARTED_MS]
  end
  if to == states.ERROR then
    event.reason, event.message, event.group = why.reason, why.message, why.group
  end
  return event
end

--- A job that carries a notification, due now. The caller adds it to its queue.
local function new_job(target)
  local queue, now = queues.load(queues.WEBHOOKS), meta.state[meta.NOW_MS]
  local id = serial.next()
  local job = jobs.new(0, states.SCHEDULED, queues.WEBHOOKS, queues.WEBHOOKS, 0, MAX_RETRY, LEASE_MS,
    cmsgpack.pack({ webhook = target }))
  job[jobs.ID] = id
  jobs.create(id, jobs.encode(job), NIL)
  queues.note_due(queue, queues.DUE_WAITING, now)
  budget.pay(budget.STEP)
  return job
end

--- The notifications of a job that ends. Ends of notifications are not notified.
---@param to string letter
---@return table[] jobs
function M.of(job, to)
  local options, made = jobs.options(job), {}
  if options.webhook then
    return made
  end
  local event
  if options.notify then
    event = event_of(job, to)
    made[1] = new_job({ url = options.notify, event = event })
  end
  local facts
  for _, hook in ipairs(meta.has(meta.HAS_WEBHOOKS) and registry.all() or {}) do
    if hook.o:find(states.name(to), 1, true) then
      facts = facts or constraints.facts(job)
      if constraints.is_match(hook, facts, job) then
        event = event or event_of(job, to)
        made[#made + 1] = new_job({ id = hook.i, event = event })
      end
    end
  end
  return made
end

return M
