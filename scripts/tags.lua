-- The tags there are, in order, and how many jobs have them.
--
-- @arg    cursor  cursor?
-- @arg    count   integer? 1..1000 = 100
-- @reply  page<{tag: name, count: integer}> tags
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   name
-- @http   GET /tags
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local tags, cursor = page.read(keys.TAG_NAMES, arguments.spec(HEAD))
local reply = { cursor }
for i, tag in ipairs(tags) do
  reply[i + 1] = { tag, redis.call("ZCARD", keys.TAGGED .. tag) }
end
return reply
