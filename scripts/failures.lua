-- What failed for good, by group.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {group?} or {cursor?, count?}, both with {steps?, from_ms?, to_ms?, sample?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local groups = require "jqlua.find.groups"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec, problem = arguments.spec("group steps from_ms to_ms sample cursor count")
if not spec then
  return redis.error_reply(problem)
end
local group = spec.group
if group ~= nil and not check.is_name(group) then
  problem = check.problem("group", check.NAME, group)
elseif group ~= nil and (spec.cursor ~= nil or spec.count ~= nil) then
  problem = "INVALID group: expected either group, or cursor and count, got both"
end
problem = problem or page.check(spec) or groups.check(spec)
if problem then
  return redis.error_reply(problem)
end
local function document(name)
  return groups.encode(name, spec)
end
if group then
  return { "", document(group) }
end
return page.documents(keys.FAILED_GROUPS, spec, document)
