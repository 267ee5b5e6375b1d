-- Everything the namespace has, as records for import, some at a time.
--
-- What is written meanwhile may be missing, or be there as it was.
--
-- @arg    cursor  cursor?               as the last reply gave it; empty at the end
-- @arg    count   integer? 1..1000 = 100  how many keys, about
-- @reply  page<record> records
-- @errors INVALID field
-- @cost   up to 1000 keys are looked at, and up to 5000 elements or a megabyte given, and one record more; over all
--         calls, every key of the database is looked at
-- @flags  read
-- @role   admin
-- @over   none
-- @http   GET /export () -> records
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local exporting = require "jqlua.upkeep.exporting"

local spec = arguments.spec("cursor count")
local cursor = spec.cursor == nil and "" or spec.cursor
local count = spec.count == nil and 100 or spec.count
local at = type(cursor) == "string" and exporting.position(cursor)
if not at then
  return redis.error_reply(check.problem("cursor", "a cursor as the last reply gave it, or empty text", cursor))
elseif not check.is_integer(count, 1, 1000) then
  return redis.error_reply(check.problem("count", "an integer from 1 to 1000", count))
end
return exporting.page(at, count)
