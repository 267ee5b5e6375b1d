-- Notes that keys of the HTTP API were used.
--
-- @arg    ids  set<name> 1..1000
-- @reply  {touched: integer}            how many of them there are
-- @errors INVALID ids, INVALID ids[i]
-- @flags  drain
-- @role   server
-- @over   first
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"

return apikeys.touch(arguments.spec(HEAD).ids)
