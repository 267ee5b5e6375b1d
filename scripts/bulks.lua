-- Lists bulk operations, the latest first: those under way, and those that ended within an hour, a hundred at most.
--
-- @reply  list<Bulk> bulks
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   first
-- @http   GET /bulks
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local bulks = require "jqlua.upkeep.bulks"

local spec = arguments.spec("")
if next(spec) ~= nil then -- an empty name, which a list of none has
  return redis.error_reply(check.unknown("", "", ""))
end
local reply = {}
for i, bulk in ipairs(bulks.all()) do
  reply[i] = bulks.document(bulk)
end
return reply
