-- Gives jobs back: they wait again, and no retry is spent.
--
-- The reply has for each queued or scheduled, LOST, CANCELLED or NOTFOUND.
--
-- @arg    worker   worker
-- @arg    jobs     list<Lease> 1..1000
-- @arg    delay    seconds? 0..1e10     delay before they are ready
-- @arg    message  message?             why, for their history; 200 bytes of it are kept
-- @arg    hold     map<seconds>? 1..10  ids of constraints, and for how long the jobs' keys are closed
-- @reply  states jobs
-- @errors INVALID field, NOTFOUND hold.id
-- @flags  drain, function
-- @role   worker
-- @bound  any
-- @over   jobs
-- @http   POST /release
local arguments = require "jqlua.base.arguments"
local held_jobs = require "jqlua.life.held_jobs"
local holding = require "jqlua.limits.holding"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
held_jobs.check(spec.jobs, 1)
local holds = spec.hold and holding.parse(spec.hold)
local answers = held_jobs.release(spec.jobs, spec.delay or 0, holds and function(job)
  holding.close(job, holds)
end or nil, spec.message)
transition.commit()
return answers
