-- Creates a recurring job, or replaces it whole; or makes its job at once, beside those of its moments; or pauses it.
--
-- @arg    id          name
-- @arg    job         ScheduledJob?       what is enqueued at each moment
-- @arg    every       seconds? 0.1..1e9   from moment to moment: multiples of it since 1970; or
-- @arg    cron        text?               five fields: minute, hour, day of month, month, day of week
-- @arg    timezone    zone? 1..255        whose clocks cron is about, such as `Europe/Berlin`; default: UTC
-- @arg    tz          text? 3..100        its rule, as in POSIX' variable TZ; default: what is known of timezone
-- @arg    catch_up    flag? = true        false: no job for a moment that passed more than a minute ago
-- @arg    paused      flag? = false       moments pass without jobs; with id alone, of one that is there
-- @arg    declared    name?               digest of a program's declaration: nothing changes if it is the same
-- @arg    argument    value? = nil        the jobs' argument
-- @arg    run         flag?               makes its job at once; with id alone
-- @arg    actor       actor?
-- @argv   spec, argument
-- @reply  Schedule
-- @reply  {job_id: job, created: flag} with run
-- @errors INVALID field, INVALID job.field, INVALID argument, NOTFOUND id, FULL job.queue
-- @flags  write
-- @role   operator
-- @over   schedule
-- @http   POST /schedule/{id}
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local schedules = require "jqlua.schedules.schedules"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

check.refuse((#ARGV < 1 or #ARGV > 2) and "INVALID arguments: expected a spec and an argument, got " .. #ARGV)
local spec = arguments.spec(HEAD, true)
local change = schedules.check(spec)
local known = spec.declared and schedules.load(spec.id)
if known and known.s.declared == spec.declared then
  return schedules.document(known, 0, 0) -- declared as before: later changes stay
end
local made = change == "run" and schedules.run_now(spec.id)
local schedule = change == "paused" and schedules.pause(spec.id, spec.paused)
trail.note("schedule", spec.id, spec)
spec.actor = nil -- the rest is stored
schedule = schedule or not made and schedules.put(spec, ARGV[2])
transition.commit()
return made or schedules.document(schedule, 0, 0)
