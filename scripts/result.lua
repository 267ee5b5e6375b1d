-- Reads a result. The first read starts the grace after which it goes.
--
-- @arg    id  job
-- @argv   id
-- @reply  result                        {state} or {state, result}
-- @errors INVALID id, NOTFOUND id, EXPIRED id
-- @flags  drain
-- @role   pusher, viewer
-- @over   job
-- @http   GET /job/{id}/result
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local find = require "jqlua.find.find"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local readers = require "jqlua.links.readers"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local sweep = require "jqlua.schedules.sweep"
local transition = require "jqlua.life.transition"

local job = find.named()
local id = job[jobs.ID]
local state = states.name(job[jobs.STATE])
local has_kept = job[jobs.STATE] == states.KEPT or job[jobs.STATE] == states.DONE and jobs.has(job, jobs.KEEP_RESULT)
if not has_kept then
  return { state }
end
local now = meta.state[meta.NOW_MS]
local queue = queues.load(job[jobs.QUEUE])
local until_ms = job[jobs.STATE] == states.KEPT and members.score(job) or 0
local grace_ms = settings.at(settings.RESULT_GRACE, queue) * 1000
local is_needed = (until_ms <= now or grace_ms == 0) and readers.any(job)
check.refuse(until_ms <= now and not is_needed
  and "EXPIRED id: the result of job " .. id .. " is gone: it was read, or it expired")
local blob = redis.call("GET", keys.OUTCOME .. id)
if grace_ms == 0 and not is_needed then
  sweep.drop_result(job)
elseif grace_ms == 0 or not jobs.has(job, jobs.READ) then
  jobs.set(job, jobs.READ)
  jobs.save(job)
  members.add(queue, states.KEPT, now + grace_ms, id)
  queues.note_due(queue, queues.DUE_ENDED, now + grace_ms)
end
transition.commit()
return { state, blob }
