-- Tells where the best job stands that a pick of these queues could start.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {queues}
-- Reply  [priority, id], or [] where there is none
-- Errors INVALID field
-- Flags: read, function
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local outlook = require "jqlua.queue.outlook"
local wishes = require "jqlua.pick.wish"

local spec, problem = arguments.spec("queues")
if not spec then
  return redis.error_reply(problem)
elseif spec.queues == nil then
  return redis.error_reply(check.problem("queues", wishes.QUEUES, nil))
end
local entries
entries, problem = wishes.parse_queues(spec.queues, "queues")
if not entries then
  return redis.error_reply(problem)
end
local priority, id = outlook.best(entries)
return id and { priority, id } or {}
