-- Gives a worker the next jobs and their leases.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker, queues, count, order, request, wait}
-- Reply  {next_ms, {document, argument}, ...}
-- Errors INVALID field, NOTFOUND worker, FULL queues
-- Cost   for each job one GET and one SET; independent of what waits. Up to 100 due things are moved before
-- Flags: drain
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local picker = require "jqlua.picker"

local problem = meta.open()
if problem then
  return redis.error_reply(problem)
end
local spec = #ARGV == 1 and check.map(ARGV[1])
if not spec then
  return redis.error_reply(check.not_one_spec())
end
local plan
plan, problem = picker.parse(spec, "")
if problem then
  return redis.error_reply(problem)
end
return picker.run(plan)
