-- Creates a webhook, or replaces it: who is told when jobs end.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {id, url, on?, secrets?, settings?, actor?}, matcher; or spec {id: "notify", secrets, settings?, actor?}
-- Reply  document
-- Errors INVALID field, INVALID match.place, FULL id, FULL match, STALE
-- Flags: write
local meta = require "jqlua.base.meta"
local registry = require "jqlua.webhooks.registry"
local trail = require "jqlua.access.trail"
local webhookspec = require "jqlua.webhooks.webhookspec"
local version = require "jqlua.base.version"

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
version.move(spec)
trail.note("subscribe", hook.i, spec)
return registry.document(hook, false)
