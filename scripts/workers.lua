-- Documents of registered workers, a page in order of registration.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local budget = require "jqlua.job.budget"
local job = require "jqlua.job.record"
local page = require "jqlua.find.page"
local worker = require "jqlua.pick.worker"

local MOST_SHOWN = 100

--- The jobs it runs, the oldest starts first.
local function running(id)
  local shown = {}
  local held = redis.call("ZRANGE", keys.HELD .. id, 0, MOST_SHOWN - 1, "WITHSCORES")
  for i = 1, #held, 2 do
    shown[#shown + 1] = { held[i], tonumber(held[i + 1]) }
  end
  return shown
end

--- cmsgpack packs an empty table as a list, which is what these are.
local function document(id)
  local record = worker.load(id)
  local held = redis.call("ZCARD", keys.HELD .. id)
  local state = "ready"
  if record.k then
    state = "quiet"
  elseif not record.u then
    state = "pulling"
  elseif redis.call("ZSCORE", keys.RESTING, id) then
    state = record.w
  elseif held >= record.m then
    state = "full"
  end
  return cmsgpack.pack({
    id = id, name = record.n, queues = record.q, url = record.u and worker.shown_url(record.u), max_jobs = record.m,
    held = held, state = state,
    seen_ms = tonumber(redis.call("ZSCORE", keys.ALIVE, id)), refused = record.r,
    since_ms = job.created_ms(id:sub(2)), lapsed = record.l or 0, running = running(id), request = record.k or "",
  })
end

local spec, problem = arguments.spec("cursor count")
if not spec then
  return redis.error_reply(problem)
end
return page.listing(keys.WORKER_IDS, spec, document, { price = 2 * budget.RECORD })
