-- Creates a namespace; changes nothing if it is there.
-- KEYS   namespace, namespace:meta
-- ARGV   none
-- Reply  schema version of the namespace
-- Errors INVALID KEYS, INVALID namespace, VERSION
-- Flags: write
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local settings = require "jqlua.settings"

if #KEYS == 2 and not string.find(KEYS[1], "^{[!-z|~]+}$") or #(KEYS[1] or "") > 66 then
  return redis.error_reply("INVALID namespace: expected {tag}, the tag 1 to 64 printable ASCII characters "
    .. "other than braces and blanks")
end
if #ARGV > 0 then
  return redis.error_reply("INVALID arguments: expected none, got " .. #ARGV)
end
local problem = meta.open()
if problem and #KEYS == 2 and KEYS[2] == KEYS[1] .. ":meta" and redis.call("EXISTS", keys.META) == 0 then
  local values = {}
  for i, setting in ipairs(settings.ALL) do
    values[i] = struct.pack(">d", setting[2])
  end
  redis.call("SET", keys.META, struct.pack(meta.FORMAT, meta.SCHEMA, 0, 0, meta.NONE, 0, 0, 0) .. table.concat(values))
  -- The index of all queues is there from the start, while it costs nothing to build.
  redis.call("HSET", keys.PATTERNS, "*", "")
elseif problem then
  return redis.error_reply(problem)
end
return meta.SCHEMA
