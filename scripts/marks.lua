-- Marks, newest first.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {from_ms?, to_ms?, cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local marks = require "jqlua.statistics.marks"

local spec, problem = arguments.spec("from_ms to_ms cursor count")
if not spec then
  return redis.error_reply(problem)
end
local reply
reply, problem = marks.page(spec)
return reply or redis.error_reply(problem)
