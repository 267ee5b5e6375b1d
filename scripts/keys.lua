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
-- @http   GET /keys
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec = arguments.spec(HEAD)
return page.listing(keys.API_KEY_IDS, spec, function(id)
  local api_key = apikeys.load(id)
  return api_key and apikeys.document(api_key, spec.digests)
end)
