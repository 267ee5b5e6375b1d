-- Creates a webhook, or replaces it: who is told when jobs end.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {id, url, on?, secrets?, actor?}, matcher; or spec {id: "notify", secrets, actor?}
-- Reply  document
-- Errors INVALID field, INVALID match.place, FULL id, FULL match
-- Flags: write
local meta = require "jqlua.base.meta"
local registry = require "jqlua.webhooks.registry"
local trail = require "jqlua.access.trail"
local webhookspec = require "jqlua.webhooks.webhookspec"

local problem = meta.open()
if problem then
  return redis.error_reply(problem)
end
local hook, spec
hook, problem, spec = webhookspec.parse()
problem = problem or registry.put(hook, spec.secrets)
if problem then
  return redis.error_reply(problem)
end
local is_plain, match = pcall(cmsgpack.unpack, ARGV[2] or "\192")
spec.match = is_plain and match or nil
trail.note("subscribe", hook.i, spec)
return registry.document(hook, false)
