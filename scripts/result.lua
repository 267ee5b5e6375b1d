-- Reads a result. The first read starts the grace after which it goes.
-- KEYS   namespace, namespace:meta
-- ARGV   id
-- Reply  {state} or {state, blob}
-- Errors INVALID id, NOTFOUND id, EXPIRED id
-- Flags: drain
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local batch = require "jqlua.base.batch"
local jobs = require "jqlua.job.jobs"
local readers = require "jqlua.links.readers"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local sweep = require "jqlua.life.sweep"
local transition = require "jqlua.life.transition"

local problem = meta.open()
if problem then
  return redis.error_reply(problem)
end
local id = ARGV[1]
if #ARGV ~= 1 or not check.is_id(id) then
  return redis.error_reply(check.problem("id", check.ID, id))
end
local of = jobs.read(id)
if not of then
  return redis.error_reply(check.missing("id", "job", id))
end
local state = states.name(of[jobs.STATE])
local has_kept = of[jobs.STATE] == states.KEPT or of[jobs.STATE] == states.DONE and jobs.has(of, jobs.KEEP_RESULT)
if not has_kept then
  return { state }
end
local now = meta.state[meta.NOW_MS]
local owner = queues.load(of[jobs.QUEUE])
local kept = queues.key(owner, states.KEPT)
local until_ms = tonumber(redis.call("ZSCORE", kept, id) or 0)
local grace_ms = settings.at(settings.RESULT_GRACE, owner) * 1000
local is_needed = (until_ms <= now or grace_ms == 0) and readers.any(of)
if until_ms <= now and not is_needed then
  return redis.error_reply("EXPIRED id: the result of job " .. id .. " is gone: it was read, or its time is over")
end
local blob = redis.call("GET", keys.OUTCOME .. id)
if grace_ms == 0 and not is_needed then
  sweep.drop_result(of)
elseif grace_ms == 0 or not jobs.has(of, jobs.READ) then
  jobs.set(of, jobs.READ)
  jobs.save(of)
  batch.add(kept, now + grace_ms, id)
  queues.note_due(owner, queues.DUE_ENDED, now + grace_ms)
end
transition.commit()
return { state, blob }
