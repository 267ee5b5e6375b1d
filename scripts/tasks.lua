-- Lists tasks, the latest first: those under way, and those that ended within an hour, a hundred at most.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {}
-- Reply  {document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local tasks = require "jqlua.upkeep.tasks"

local spec, problem = arguments.spec("")
if not spec then
  return redis.error_reply(problem)
end
local reply = {}
for i, of in ipairs(tasks.all()) do
  reply[i] = tasks.document(of)
end
return reply
