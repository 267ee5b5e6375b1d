-- Creates a recurring job, or replaces it; or makes its job at once, beside those of its moments.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {id, job, every, offset?} or {id, job, cron, utc_offset?}, with {start?, end?, limit?, catch_up?,
--        backlog?, paused?, declared?, actor?}; argument. Or spec {id, run, actor?}
-- Reply  document; with run {job id, created}
-- Errors INVALID field, INVALID job.field, INVALID argument, NOTFOUND id, FULL job.queue
-- Cost   independent of how many schedules there are and of what waits; jobs are made by the sweeps that follow
-- Flags: write
local meta = require "jqlua.base.meta"
local schedules = require "jqlua.schedules.schedules"
local scheduling = require "jqlua.schedules.scheduling"
local scheduledoc = require "jqlua.schedules.scheduledoc"
local schedulespec = require "jqlua.schedules.schedulespec"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local problem = meta.open()
if problem then
  return redis.error_reply(problem)
end
local spec
spec, problem = schedulespec.parse_run()
if spec then
  local answer
  answer, problem = scheduling.run_now(spec.id)
  if not answer then
    return redis.error_reply(problem)
  end
  trail.note("schedule", spec.id, spec)
  transition.commit()
  return answer
end
if not problem then
  spec, problem = schedulespec.parse()
end
if problem then
  return redis.error_reply(problem)
end
local known = spec.declared and schedules.load(spec.id)
if known and known.s.declared == spec.declared then
  return scheduledoc.encode(known, 0) -- a program declares the same as before: what was changed since stays
end
trail.note("schedule", spec.id, spec)
spec.actor = nil -- what is left is kept
local schedule = scheduling.put(spec, ARGV[2])
transition.commit()
return scheduledoc.encode(schedule, 0)
