-- Gives a worker the next jobs and their leases.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker, queues, count, order, before, without, request, wait}
-- Reply  {next_ms, document, argument, document, argument, ...}
-- Errors INVALID field, NOTFOUND worker, FULL queues
-- Cost   for each job its part of one MGET, MSET and ZADD; independent of what waits. Up to 100 due things are
-- moved before
-- Flags: drain, function
local meta = require "jqlua.base.meta"
local picker = require "jqlua.pick.picker"
local plans = require "jqlua.pick.plans"
local wishes = require "jqlua.pick.wishes"
local queues = require "jqlua.queue.queues"

local wish, problem, token, before = wishes.read(ARGV[1])
if not wish then
  return redis.error_reply(problem)
end
local raws
if wish.queue then
  problem, raws = meta.open(queues.record_key(wish.queue))
else
  problem, raws = meta.open()
end
local plan
if not problem then
  plan, problem = plans.new(wish, token, before)
end
if problem then
  return redis.error_reply(problem)
end
return picker.run(plan, { nil, nil, nil }, raws[2])
