-- Changes what a job waits for.
--
-- @arg    id         job                the job, which has not started
-- @arg    add        set<job>? 0..100  jobs to wait for
-- @arg    remove     set<job>? 0..100  jobs to wait for no longer
-- @arg    if_failed  wait|fail|run|only?  what becomes of it when one of them fails or is cancelled
-- @reply  state
-- @errors INVALID field, NOTFOUND id, NOTFOUND add[i], CONFLICT id, CONFLICT add[i]
-- @flags  write
-- @role   pusher, operator
-- @over   job
-- @http   POST /job/{id}/depends
local arguments = require "jqlua.base.arguments"
local dependency = require "jqlua.life.dependency"
local dependents = require "jqlua.life.dependents"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
local job, added = dependency.read(spec)
dependency.note(job, spec)
dependents.change(job, added, spec.remove or {}, spec.if_failed ~= nil)
transition.commit()
return states.name(job[jobs.STATE])
