-- Notes that keys of the HTTP API were used.
--
-- @arg    ids  list<name> 1..1000
-- @reply  {touched: integer}            how many of them there are
-- @errors INVALID ids, INVALID ids[i]
-- @flags  drain
-- @role   server
-- @over   first
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"

local spec = arguments.spec("ids")
if not check.is_list(spec.ids, 1, apikeys.MOST) then
  return redis.error_reply(check.problem("ids", "a list of 1 to " .. apikeys.MOST .. " ids of keys", spec.ids))
end
check.refuse(check.distinct(spec.ids, "ids", apikeys.is_id, apikeys.ID))
return apikeys.touch(spec.ids)
