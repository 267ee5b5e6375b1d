-- Takes a key of the HTTP API away. It stops working on every server within a second.
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

local spec = arguments.spec(HEAD)
local api_key = apikeys.load(spec.id)
check.refuse(not api_key and check.missing("id", "key", spec.id))
apikeys.delete(spec.id)
spec.name = api_key.name
trail.note("revoke", spec.id, spec)
return 1
