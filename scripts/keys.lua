-- Lists the keys of the HTTP API, in order of id, without secrets.
--
-- @arg    digests  flag?                with the SHA-256 of each secret
-- @arg    cursor   cursor?
-- @arg    count    integer? 1..1000 = 100
-- @reply  page<Key> keys
-- @errors INVALID field
-- @flags  read
-- @role   admin
-- @role   server with digests
-- @over   first
-- @http   GET /keys (cursor, count)
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec = arguments.spec("cursor count digests")
if spec.digests ~= nil and type(spec.digests) ~= "boolean" then
  return redis.error_reply(check.problem("digests", "true or false", spec.digests))
end
return page.listing(keys.API_KEY_IDS, spec, function(id)
  local api_key = apikeys.load(id)
  return api_key and apikeys.document(id, api_key, spec.digests)
end)
