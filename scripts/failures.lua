-- What failed for good, by group.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local call = redis.call

---@return string? map nil when the group has no jobs
local function document(group)
  local key = keys.FAILED .. group
  local first, last = call("ZRANGE", key, 0, 0, "WITHSCORES"), call("ZRANGE", key, -1, -1, "WITHSCORES")
  if not last[1] then
    return nil
  end
  local raw = call("GET", keys.EXTRA .. last[1])
  return cmsgpack.pack({
    group = group, count = call("ZCARD", key), first_ms = tonumber(first[2]), last_ms = tonumber(last[2]), id = last[1],
    message = raw and cmsgpack.unpack(raw).m or "",
  })
end

local spec, problem = arguments.spec("cursor count")
if not spec then
  return redis.error_reply(problem)
end
return page.listing(keys.FAILED_GROUPS, spec, document)
