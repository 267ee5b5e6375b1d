-- Runs jobs again that failed for good, were cancelled or skipped, or wait for their backoff.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids, queue?, actor?} or {where, cursor?, count?, queue?, actor?}: queue is where they are to wait
-- Reply  for each job queued, or NOTFOUND, or CONFLICT (its state does not allow it, or its unique key is another's);
--        with where {cursor, changed}: of the jobs that fit, and had come there when the first call was made
-- Errors INVALID field, FULL queue
-- Cost   with where, some milliseconds at most; with ids, each of them
-- Flags: write
local retry = require "jqlua.life.retry"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local moving = require "jqlua.life.moving"
local selection = require "jqlua.find.selection"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec, selected = selection.spec("queue")
if not spec then
  return redis.error_reply(selected)
end
local expected = spec.queue ~= nil and moving.check_queue(spec.queue)
if expected then
  return redis.error_reply(check.problem("queue", expected, spec.queue))
end
local problem = retry.check(selected.ids, spec.queue)
if problem then
  return redis.error_reply(problem)
end
local letters = spec.where and spec.where.status == nil and retry.DEFAULT_STATES or retry.STATES
local reply, changed = selection.each(selected, letters, function(job)
  -- What failed once more since the first call is not retried for ever.
  if selected.where and job[jobs.ENDED_MS] > selected.begun_ms then
    return "CONFLICT"
  end
  return retry.retry(job, spec.queue)
end)
trail.note_jobs("retry", spec, changed)
transition.commit()
return reply
