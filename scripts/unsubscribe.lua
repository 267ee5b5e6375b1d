-- Deletes a webhook. What it is still to be told is not delivered any more.
--
-- @arg    id     name
-- @arg    actor  actor?
-- @reply  nothing
-- @errors INVALID id, NOTFOUND id
-- @flags  drain
-- @role   operator
-- @over   all
-- @http   DELETE /webhook/{id}
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local registry = require "jqlua.webhooks.registry"
local trail = require "jqlua.access.trail"

local spec = arguments.spec(HEAD)
check.refuse(not registry.find(spec.id) and check.missing("id", "webhook", spec.id))
registry.delete(spec.id)
trail.note("unsubscribe", spec.id, spec)
return 1
