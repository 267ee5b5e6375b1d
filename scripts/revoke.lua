-- Takes a key of the HTTP API away. It stops working on every server at once.
--
-- @arg    id     name
-- @arg    actor  actor?
-- @reply  nothing
-- @errors INVALID id, NOTFOUND id
-- @flags  drain
-- @role   admin
-- @over   all
-- @http   DELETE /key/{id}
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local trail = require "jqlua.access.trail"

local spec = arguments.operators("id")
if not apikeys.is_id(spec.id) then
  return redis.error_reply(check.problem("id", apikeys.ID, spec.id))
end
local api_key = apikeys.load(spec.id)
if not api_key then
  return redis.error_reply(check.missing("id", "key", spec.id))
end
apikeys.delete(spec.id)
spec.name = api_key.n
trail.note("revoke", spec.id, spec)
return 1
