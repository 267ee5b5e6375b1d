-- The tags there are, and how many jobs have them: in order of tag, or the most used first.
--
-- @arg    top     integer? 1..1000      this many of the most used
-- @arg    cursor  cursor?
-- @arg    count   integer? 1..1000 = 100
-- @reply  page<{tag: name, count: integer}> tags
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   tags
-- @http   GET /tags
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local check = require "jqlua.base.check"
local page = require "jqlua.find.page"

local call = redis.call

local spec = arguments.spec(HEAD)
check.refuse(spec.top and (spec.cursor or spec.count)
  and "INVALID top: expected either top, or cursor and count, got both")
local reply = { "" }
if spec.top then
  local used = call("ZRANGE", keys.TAGS, 0, spec.top - 1, "REV", "WITHSCORES")
  for i = 1, #used, 2 do
    reply[#reply + 1] = { used[i], tonumber(used[i + 1]) }
  end
  return reply
end
local tags, cursor = page.read(keys.TAG_NAMES, spec)
reply[1] = cursor
local counts = tags[1] and call("ZMSCORE", keys.TAGS, unpack(tags)) or {}
for i, tag in ipairs(tags) do
  reply[i + 1] = { tag, tonumber(counts[i] or 0) }
end
return reply
