-- Creates a key of the HTTP API. The secret stays with the caller.
--
-- @arg    id      text                  twelve hexadecimal digits, of the caller's making
-- @arg    digest  text                  the SHA-256 of its secret, in hex
-- @arg    name    actor                 whose it is; the trail has it
-- @arg    roles   set<viewer|pusher|worker|operator|admin> 1..5
-- @arg    queues  set<name>? 1..100     queues and patterns that it is bound to
-- @arg    ttl     seconds? 1..1e10      when it expires
-- @arg    rate    number? 0.001..1e6    requests a second, of each server; more are refused (429)
-- @arg    actor   actor?
-- @reply  Key
-- @errors INVALID field, CONFLICT id (there is another key of this id), FULL id
-- @flags  write
-- @role   admin
-- @over   all
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local trail = require "jqlua.access.trail"

local spec = arguments.spec(HEAD)
check.refuse(not apikeys.is_id(spec.id) and check.problem("id", apikeys.ID, spec.id))
-- Not shown: it may be the secret by mistake.
check.refuse((#spec.digest ~= 64 or spec.digest:find("[^0-9a-f]"))
  and "INVALID digest: expected the SHA-256 of the secret, 64 hexadecimal digits")
local api_key = apikeys.load(spec.id)
check.refuse(api_key and api_key.digest ~= spec.digest
  and "CONFLICT id: another key has the id " .. check.show(spec.id))
if not api_key then
  check.refuse(redis.call("HLEN", keys.API_KEYS) >= apikeys.MOST
    and "FULL id: there are " .. apikeys.MOST .. " keys, the limit: revoke those not in use")
  api_key = apikeys.put(spec)
  trail.note("grant", spec.id, spec)
end
return apikeys.document(api_key)
