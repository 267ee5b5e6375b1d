-- Takes a key of the HTTP API away. It stops working on every server at once.
--
-- @arg    id     name
-- @arg    actor  actor?
-- @reply  nothing
-- @errors INVALID id, NOTFOUND id
-- @flags  drain
-- @role   admin
-- @http   DELETE /key/{id}
local apikey = require "jqlua.access.apikey"
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local trail = require "jqlua.access.trail"

local spec, problem = arguments.operators("id")
if not spec then
  return redis.error_reply(problem)
elseif not apikey.is_id(spec.id) then
  return redis.error_reply(check.problem("id", apikey.ID, spec.id))
end
local of = apikey.load(spec.id)
if not of then
  return redis.error_reply(check.missing("id", "key", spec.id))
end
apikey.delete(spec.id)
spec.name = of.n
trail.note("revoke", spec.id, spec)
return 1
