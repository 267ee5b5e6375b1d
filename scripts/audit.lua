-- Recounts indexes against job records, a step at a time.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {cursor?, count?}
-- Reply  {cursor, problem, ...}   the cursor is "0" at the end
-- Errors INVALID field
-- Cost   a step looks at about count keys, and at up to 2000 members of each set among them
-- Flags: read
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local audit = require "jqlua.upkeep.audit"

local spec, problem = arguments.spec("cursor count")
if not spec then
  return redis.error_reply(problem)
end
local cursor = spec.cursor == nil and "0" or spec.cursor
local count = spec.count == nil and 100 or spec.count
if type(cursor) ~= "string" or not cursor:find("^%d+$") or #cursor > 20 then
  return redis.error_reply(check.problem("cursor", "a cursor as the last reply gave it", cursor))
elseif not check.is_integer(count, 1, 1000) then
  return redis.error_reply(check.problem("count", "an integer from 1 to 1000", count))
end
-- SCAN's pattern: a namespace may hold characters that mean something there.
local pattern = KEYS[1]:gsub("[%*%?%[%]%^%\\]", "\\%0") .. ":*"
local page = redis.call("SCAN", cursor, "MATCH", pattern, "COUNT", count)
local reply = { page[1] }
if cursor == "0" then
  audit.bounds(reply)
end
for _, key in ipairs(page[2]) do
  audit.key(key:sub(#KEYS[1] + 2), reply)
end
return reply
