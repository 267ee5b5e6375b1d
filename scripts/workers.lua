-- Documents of registered workers, a page in order of registration; or of the others.
--
-- The others are those that pull and announce themselves, and for an hour those that died.
--
-- @arg    ids     list<worker>? 1..20  those named; or
-- @arg    others  flag?                  not the registered ones
-- @arg    cursor  cursor?
-- @arg    count   integer? 1..1000 = 100
-- @reply  page<Worker> workers
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   name
-- @http   GET /workers
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local page = require "jqlua.find.page"
local check = require "jqlua.base.check"
local unregistered = require "jqlua.workers.unregistered"
local workers = require "jqlua.workers.workers"

local MOST_SHOWN = 100

--- Its running jobs, the oldest starts first.
local function running(id)
  local shown = {}
  local held = redis.call("ZRANGE", keys.HELD .. id, 0, MOST_SHOWN - 1, "WITHSCORES")
  for i = 1, #held, 2 do
    shown[#shown + 1] = { held[i], tonumber(held[i + 1]) }
  end
  return shown
end

--- cmsgpack packs empty tables as lists, which these are.
local function document(id)
  local record = workers.load(id)
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
    id = id, name = record.n, queues = record.q, url = record.u and workers.shown_url(record.u), max_jobs = record.m,
    held = held, state = state, host = record.h, pid = record.i, version = record.v, knows = record.j,
    seen_ms = tonumber(redis.call("ZSCORE", keys.ALIVE, id)), refused = record.r,
    since_ms = jobs.created_ms(id:sub(2)), lapsed = record.l or 0, running = running(id), request = record.k or "",
  })
end

local function other(id)
  local document_of = unregistered.document(id)
  return document_of and cmsgpack.pack(document_of)
end

local spec = arguments.spec(HEAD)
check.refuse(spec.ids and spec.others ~= nil
  and "INVALID ids: expected either ids, or others, cursor and count, got both")
local function any(id)
  return workers.is_id(id) and workers.load(id) and document(id) or other(id)
end
return page.listing(spec.others and keys.OTHER_IDS or keys.WORKER_IDS, spec,
  spec.ids and any or spec.others and other or document,
  { named = "ids", price = 2 * budget.RECORD })
