-- Runs jobs again that failed for good, were cancelled or skipped, or wait for their backoff.
--
-- The reply has for each queued, NOTFOUND, or CONFLICT: its state does not allow it, or its unique key is another's.
-- With `where`: of the jobs that fit, and had come there when the first call was made.
--
-- @arg    ids     list<job>? 1..1000     the jobs; or
-- @arg    where   Where?                 all that match, a step with each call
-- @arg    cursor  cursor?                with where: of the step before
-- @arg    count   integer? 1..1000 = 100 with where: how many to change, at most
-- @arg    queue   queue?                 where they wait from now on; default: where they did
-- @arg    actor   actor?
-- @reply  states jobs
-- @reply  {cursor: cursor, changed: integer} with where
-- @errors INVALID field
-- @conflict neither failed, cancelled, skipped nor waiting for a retry; or its unique key is another's
-- @flags  write
-- @role   operator
-- @over   jobs
-- @http   POST /jobs/retry
local retry = require "jqlua.life.retry"
local jobs = require "jqlua.job.jobs"
local find = require "jqlua.find.find"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec, selected = find.selection(HEAD)
retry.check(selected.ids, spec.queue)
local letters = spec.where and spec.where.status == nil and retry.DEFAULT_STATES or retry.STATES
local reply, changed = find.each(selected, letters, function(job)
  -- Jobs that failed again since the first call are not retried, or it would never end.
  if selected.where and job[jobs.ENDED_MS] > selected.begun_ms then
    return "CONFLICT"
  end
  return retry.retry(job, spec.queue)
end)
trail.note_jobs("retry", spec, selected, changed)
transition.commit()
return reply
