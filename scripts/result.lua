-- Reads a result. The first read starts the grace after which it goes.
-- KEYS   namespace, namespace:meta
-- ARGV   id
-- Reply  {state} or {state, blob}
-- Errors INVALID id, NOTFOUND id
-- Flags: drain
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local batch = require "jqlua.base.writes"
local job = require "jqlua.job.record"
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
if of[job.STATE] ~= states.KEPT then
  return { state }
end
local now = meta.state[meta.NOW_MS]
local owner = queue.load(of[job.QUEUE])
local kept = queue.key(owner, states.KEPT)
local until_ms = tonumber(redis.call("ZSCORE", kept, id))
if until_ms <= now then
  return { state }
end
local blob = redis.call("GET", keys.OUTCOME .. id)
local grace_ms = settings.at(settings.RESULT_GRACE, owner) * 1000
if grace_ms == 0 then
  sweep.drop_result(of)
elseif not job.has(of, job.READ) then
  job.set(of, job.READ)
  job.save(of)
  batch.add(kept, now + grace_ms, id)
  queue.note_due(owner, queue.DUE_ENDED, now + grace_ms)
end
transition.commit()
return { state, blob }
