-- What operators changed, newest first.
--
-- @arg    who     name?                  only what this one did
-- @arg    what    name?                  only this operation
-- @arg    on      name?                  only what was about this queue or id
-- @arg    cursor  cursor?
-- @arg    count   integer? 1..1000 = 100
-- @reply  page<TrailEntry> trail
-- @errors INVALID field
-- @flags  read
-- @role   operator
-- @over   each
-- @http   GET /trail
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"
local trail = require "jqlua.access.trail"

local spec = arguments.spec(HEAD)
local cursor, wanted = spec.cursor or "", { actor = spec.who, what = spec.what, on = spec.on }
check.refuse(cursor ~= "" and not check.is_id(cursor) and check.problem("cursor", check.CURSOR, cursor))
local reply = page.newest(keys.TRAIL, cursor == "" and "+" or "(" .. cursor, "-", spec.count, function(member)
  local packed = member:sub(trail.DIGITS + 1)
  local entry = next(wanted) and cmsgpack.unpack(packed)
  for field, value in pairs(wanted) do
    if entry[field] ~= value then
      return nil
    end
  end
  return packed
end)
reply[1] = reply[1]:sub(1, trail.DIGITS)
return reply
