-- Deletes a webhook. What it is still to be told is not delivered any more.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {id, actor?}
-- Reply  1
-- Errors INVALID id, NOTFOUND id
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local registry = require "jqlua.webhooks.registry"
local trail = require "jqlua.access.trail"

local spec, problem = arguments.operators("id")
if not spec then
  return redis.error_reply(problem)
elseif not check.is_name(spec.id) then
  return redis.error_reply(check.problem("id", check.NAME, spec.id))
elseif not registry.find(spec.id) then
  return redis.error_reply(check.missing("id", "webhook", spec.id))
end
registry.delete(spec.id)
trail.note("unsubscribe", spec.id, spec)
return 1
