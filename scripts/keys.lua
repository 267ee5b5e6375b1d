-- Lists the keys of the HTTP API, in order of id.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {cursor?, count?, digests?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec, problem = arguments.spec("cursor count digests")
if not spec then
  return redis.error_reply(problem)
end
if spec.digests ~= nil and type(spec.digests) ~= "boolean" then
  return redis.error_reply(check.problem("digests", "true or false", spec.digests))
end
return page.listing(keys.API_KEY_IDS, spec, function(id)
  local api_key = apikeys.load(id)
  return api_key and apikeys.document(id, api_key, spec.digests)
end)
