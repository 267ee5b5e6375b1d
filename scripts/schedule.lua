-- Creates a recurring job, or replaces it.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {id, job, every, offset?} or {id, job, cron, utc_offset?}, with {start?, end?, limit?, catch_up?,
--        backlog?, paused?, actor?}; argument
-- Reply  document
-- Errors INVALID field, INVALID job.field, INVALID argument
-- Cost   independent of how many schedules there are and of what waits; jobs are made by the sweeps that follow
-- Flags: write
local meta = require "jqlua.base.meta"
local schedule = require "jqlua.schedules.schedule"
local scheduledoc = require "jqlua.schedules.scheduledoc"
local schedulespec = require "jqlua.schedules.schedulespec"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local problem = meta.open()
if problem then
  return redis.error_reply(problem)
end
local spec
spec, problem = schedulespec.parse()
if problem then
  return redis.error_reply(problem)
end
trail.note("schedule", spec.id, spec)
spec.actor = nil -- what is left is kept
local of = schedule.put(spec, ARGV[2])
transition.commit()
return scheduledoc.encode(of, 0)
