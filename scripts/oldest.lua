-- The job that has been ready for longest: of one queue, or of a page of all.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {queue?} or {cursor?, count?}
-- Reply  {cursor, document?}   of {id, queue, age_ms}; none where no job is ready in the queues looked at
-- Errors INVALID field, NOTFOUND queue
-- Flags: read
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local job = require "jqlua.job.record"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local oldest = require "jqlua.queue.oldest"
local page = require "jqlua.find.page"
local queue = require "jqlua.queue.record"

local spec, problem = arguments.spec("queue cursor count")
if not spec then
  return redis.error_reply(problem)
end
problem = page.check(spec)
if not problem and spec.queue ~= nil then
  if not check.is_name(spec.queue) or glob.is_pattern(spec.queue) then
    problem = check.problem("queue", check.NAME .. ", no *", spec.queue)
  elseif spec.cursor ~= nil or spec.count ~= nil then
    problem = "INVALID queue: expected either queue, or cursor and count, got both"
  elseif queue.load(spec.queue)[queue.IS_NEW] then
    problem = check.missing("queue", "queue", spec.queue)
  end
end
if problem then
  return redis.error_reply(problem)
end
local names, cursor = { spec.queue }, ""
if not spec.queue then
  names, cursor = page.read(keys.QUEUE_NAMES, spec)
end
local least, found, where = math.huge, nil, nil
for i, name in ipairs(names) do
  local since_ms, of = oldest.since(queue.load(name))
  if of and since_ms < least then
    least, found, where = since_ms, of, name
  end
  if not budget.pay(budget.RECORD) and i < #names then
    cursor = name
    break
  end
end
local reply = { cursor }
if found then
  local age_ms = math.max(0, meta.state[meta.NOW_MS] - least)
  reply[2] = cmsgpack.pack({ id = found[job.ID], queue = where, age_ms = age_ms })
end
return reply
