-- Reads a result. The first read starts the grace after which it goes.
--
-- @arg    id  job
-- @argv   id
-- @reply  result                        {state} or {state, result}
-- @errors INVALID id, NOTFOUND id, EXPIRED id
-- @flags  drain
-- @role   pusher, viewer
-- @http   GET /job/{id}/result -> value
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local batch = require "jqlua.base.writes"
local job = require "jqlua.job.record"
local readers = require "jqlua.links.readers"
local states = require "jqlua.job.states"
local queue = require "jqlua.queue.record"
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
local of = job.read(id)
if not of then
  return redis.error_reply(check.missing("id", "job", id))
end
local state = states.name(of[job.STATE])
local has_kept = of[job.STATE] == states.KEPT or of[job.STATE] == states.DONE and job.has(of, job.KEEP_RESULT)
if not has_kept then
  return { state }
end
local now = meta.state[meta.NOW_MS]
local owner = queue.load(of[job.QUEUE])
local kept = queue.key(owner, states.KEPT)
local until_ms = tonumber(redis.call("ZSCORE", kept, id) or 0)
local grace_ms = settings.at(settings.RESULT_GRACE, owner) * 1000
local is_needed = (until_ms <= now or grace_ms == 0) and readers.any(of)
if until_ms <= now and not is_needed then
  return redis.error_reply("EXPIRED id: the result of job " .. id .. " is gone: it was read, or its time is over")
end
local blob = redis.call("GET", keys.OUTCOME .. id)
if grace_ms == 0 and not is_needed then
  sweep.drop_result(of)
elseif grace_ms == 0 or not job.has(of, job.READ) then
  job.set(of, job.READ)
  job.save(of)
  batch.add(kept, now + grace_ms, id)
  queue.note_due(owner, queue.DUE_ENDED, now + grace_ms)
end
transition.commit()
return { state, blob }
