-- Documents of registered workers, a page in order of registration.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.arguments"
local keys = require "jqlua.keys"
local page = require "jqlua.page"
local worker = require "jqlua.worker"

--- cmsgpack packs an empty table as a list, which is what these are.
local function document(id)
  local record = worker.load(id)
  local held = redis.call("ZCARD", keys.HELD .. id)
  local state = "ready"
  if not record.u then
    state = "pulling"
  elseif redis.call("ZSCORE", keys.RESTING, id) then
    state = record.w
  elseif held >= record.m then
    state = "full"
  end
  return cmsgpack.pack({
    id = id, name = record.n, queues = record.q, url = record.u, max_jobs = record.m, held = held, state = state,
    seen_ms = tonumber(redis.call("ZSCORE", keys.ALIVE, id)), refused = record.r,
  })
end

local spec, problem = arguments.spec("cursor count")
if not spec then
  return redis.error_reply(problem)
end
problem = page.check(spec)
if problem then
  return redis.error_reply(problem)
end
local ids, cursor = page.read(keys.WORKER_IDS, spec)
local reply = { cursor }
for i, id in ipairs(ids) do
  reply[i + 1] = document(id)
end
return reply
