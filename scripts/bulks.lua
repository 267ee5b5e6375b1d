-- Lists bulk operations, the latest first: those under way, and those that ended within an hour, a hundred at most.
--
-- @reply  list<Bulk> bulks
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   first
-- @http   GET /bulks
local arguments = require "jqlua.base.arguments"
local bulks = require "jqlua.upkeep.bulks"

arguments.spec(HEAD)
local reply = {}
for i, bulk in ipairs(bulks.all()) do
  reply[i] = bulks.document(bulk)
end
return reply
