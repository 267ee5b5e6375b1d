-- Takes running jobs away from their workers. They wait again, and no retry is spent.
--
-- The workers are told. The reply has for each queued or scheduled, NOTFOUND, or CONFLICT: it does not run.
-- With `where`: of the jobs that fit, and had started when the first call was made.
--
-- @arg    ids     list<job>? 1..1000      the jobs; or
-- @arg    where   Where?                  all that match, a step with each call
-- @arg    cursor  cursor?                 with where: of the step before
-- @arg    count   integer? 1..1000 = 100  with where: how many to take, at most
-- @arg    delay   seconds? 0..1e10        how long before they are ready
-- @arg    actor   actor?
-- @reply  states jobs
-- @reply  {cursor: cursor, changed: integer} with where
-- @errors INVALID field
-- @conflict it does not run
-- @flags  drain
-- @role   operator
-- @over   jobs
-- @http   POST /jobs/kick
local attempts = require "jqlua.life.attempts"
local jobs = require "jqlua.job.jobs"
local find = require "jqlua.find.find"
local states = require "jqlua.job.states"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec, selected = find.selection(HEAD)
local reply, changed = find.each(selected, states.RUNNING, function(job)
  if job[jobs.STATE] ~= states.RUNNING or selected.where and job[jobs.STARTED_MS] > selected.begun_ms then
    return "CONFLICT"
  end
  transition.notify_worker(job, "kicked")
  return attempts.release(job, spec.delay or 0), true
end)
trail.note_jobs("kick", spec, selected, changed)
transition.commit()
return reply
