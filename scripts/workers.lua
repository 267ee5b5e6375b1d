-- Documents of workers, a page in order of id: of those that are registered, those that pull and announce themselves,
-- and for an hour those that died.
--
-- @arg    ids     list<worker>? 1..20
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
local workers = require "jqlua.workers.workers"

---@param held number how many jobs it runs
local function state_of(id, record, held)
  if workers.is_gone(record) then
    return "gone"
  elseif record.k then
    return "quiet"
  elseif not record.u then
    return "pulling"
  elseif workers.is_resting(id) then
    return record.w
  end
  return held >= workers.room(record) and "full" or "ready"
end

--- cmsgpack packs empty tables as lists, which these are.
local function document(id)
  local record = workers.find(id)
  if not record then
    return nil
  end
  local running = workers.running(id, record.u)
  local held = record.u and redis.call("ZCARD", keys.HELD .. id) or #running
  return cmsgpack.pack({
    id = id, name = record.n, queues = record.q, url = record.u, max_jobs = record.m,
    held = held, state = state_of(id, record, held), host = record.h, pid = record.i, version = record.v,
    knows = record.j, seen_ms = record.t, refused = record.r,
    since_ms = record.b or jobs.created_ms(id:sub(2)), lapsed = record.l or 0, running = running,
    request = record.k or "", lost = record.d and record.x,
  })
end

return page.listing(keys.WORKER_IDS, arguments.spec(HEAD), document, { named = "ids", price = 2 * budget.RECORD })
