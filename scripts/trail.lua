-- What operators changed, newest first.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local trail = require "jqlua.access.trail"

local spec, problem = arguments.spec("cursor count")
if not spec then
  return redis.error_reply(problem)
end
local reply
reply, problem = trail.page(spec)
return reply or redis.error_reply(problem)
