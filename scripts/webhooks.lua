-- Lists webhooks, in order of id: all of them, as they are few.
--
-- @arg    secrets  flag?                with what they are signed with
-- @reply  list<Webhook> webhooks
-- @errors INVALID field
-- @flags  read
-- @role   operator
-- @role   server with secrets
-- @over   first
-- @http   GET /webhooks
local arguments = require "jqlua.base.arguments"
local registry = require "jqlua.webhooks.registry"

local spec = arguments.spec(HEAD)
local reply = {}
for i, hook in ipairs(registry.all()) do
  reply[i] = registry.document(hook, spec.secrets)
end
return reply
