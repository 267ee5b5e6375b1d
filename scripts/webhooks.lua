-- Lists webhooks, in order of id: all of them, as they are few.
--
-- @arg    secrets  flag?                with what they are signed with
-- @reply  list<Webhook> webhooks
-- @errors INVALID field
-- @flags  read
-- @role   operator
-- @role   server with secrets
-- @over   first
-- @http   GET /webhooks ()
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local registry = require "jqlua.webhooks.registry"

local spec = arguments.spec("secrets")
if spec.secrets ~= nil and type(spec.secrets) ~= "boolean" then
  return redis.error_reply(check.problem("secrets", "true or false", spec.secrets))
end
local reply = {}
for i, hook in ipairs(registry.all()) do
  reply[i] = registry.document(hook, spec.secrets)
end
return reply
