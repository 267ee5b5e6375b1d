-- Gives back a delivery that a worker did not take; it gets nothing more of the kind, or for a while. For JQ servers.
--
-- The reply has for each queued, LOST, CANCELLED or NOTFOUND.
--
-- @arg    worker       worker
-- @arg    jobs         list<Lease> 0..1000
-- @arg    why          unknown|busy|unreachable
-- @arg    retry_after  seconds? 0..3600 = 1  how long it gets nothing, at least
-- @arg    message      message?              for the jobs' history
-- @reply  states
-- @errors INVALID field, NOTFOUND worker
-- @flags  drain
-- @role   server
-- @over   jobs
local arguments = require "jqlua.base.arguments"
local meta = require "jqlua.base.meta"
local jobs = require "jqlua.job.jobs"
local held_jobs = require "jqlua.life.held_jobs"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local spec = arguments.spec(HEAD)
held_jobs.check(spec.jobs, 0)
local why, retry_after = spec.why, spec.retry_after or 1
workers.registered(spec.worker)
local record = workers.edit(spec.worker)

-- The worker's state changes first: a released job must not be assigned to it again at once.
if why ~= "unknown" then
  local until_ms = meta.state[meta.NOW_MS] + math.max(1, math.ceil(retry_after * 1000))
  workers.rest(spec.worker, record, why, until_ms)
end
local answers = held_jobs.release(spec.jobs, 0, why == "unknown" and function(job)
  workers.refuse_name(spec.worker, record, job[jobs.NAME])
end or nil, spec.message)
workers.took(spec.worker)
transition.commit()
return answers
