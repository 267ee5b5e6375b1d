-- Gives a worker the next jobs and their leases.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker, queues, count, order, request, wait}
-- Reply  {next_ms, document, argument, document, argument, ...}
-- Errors INVALID field, NOTFOUND worker, FULL queues
-- Cost   for each job its part of one MGET, MSET and ZADD; independent of what waits. Up to 100 due things are
-- moved before
-- Flags: drain, function
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local picker = require "jqlua.pick.picker"

local spec = #ARGV == 1 and check.map(ARGV[1])
if not spec then
  return redis.error_reply(check.not_one_spec())
end
local plan, problem = picker.parse(spec, "")
if problem then
  return redis.error_reply(problem)
end
local raws
if plan.queue then
  problem, raws = meta.open(keys.QUEUE .. plan.queue)
else
  problem, raws = meta.open()
end
problem = problem or picker.resolve(plan)
if problem then
  return redis.error_reply(problem)
end
return picker.run(plan, {}, raws[2])
