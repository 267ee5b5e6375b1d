-- Creates a namespace; changes nothing if it is there.
-- KEYS   namespace, namespace:meta
-- ARGV   none, or spec {partition?: its number in a system, which its ids name from the first on}
-- Reply  schema version of the namespace
-- Errors INVALID KEYS, INVALID namespace, INVALID partition, VERSION, CONFLICT (an import has begun),
--        CONFLICT partition
-- Flags: write
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local serial = require "jqlua.base.serial"
local settings = require "jqlua.settings.settings"

local problem = meta.name_problem()
if problem then
  return redis.error_reply(problem)
end
local spec = #ARGV == 0 and {} or #ARGV == 1 and check.map(ARGV[1])
if not spec then
  return redis.error_reply(check.not_one_spec())
end
problem = check.unknown_field(spec, "partition")
if not problem and spec.partition ~= nil and not check.is_integer(spec.partition, 1, 255) then
  problem = check.problem("partition", "an integer from 1 to 255", spec.partition)
end
if problem then
  return redis.error_reply(problem)
end
local own = spec.partition and string.format("%02x", spec.partition)
local last = own and redis.call("GET", keys.SEQ)
if last and last:sub(serial.DIGITS + 1) ~= own then
  return redis.error_reply("CONFLICT partition: namespace " .. KEYS[1] .. " has given ids of another one, or of none")
end
problem = meta.open()
if problem and redis.call("EXISTS", keys.META) == 0 then
  local noted = redis.call("GET", keys.IMPORT)
  if noted and noted:sub(1, 4) ~= "done" then
    return redis.error_reply("CONFLICT an import into namespace " .. KEYS[1] .. " has begun: complete it, or remove "
      .. "its keys")
  end
  local values = {}
  for i, setting in ipairs(settings.ALL) do
    values[i] = setting[2]
  end
  redis.call("SET", keys.META, struct.pack(meta.FORMAT, meta.SCHEMA, 0, 0, meta.NONE, 0, 0, 0, meta.new_secret())
    .. settings.packed(values, 1, settings.EARLY))
  -- The index of all queues is there from the start, while it costs nothing to build.
  redis.call("HSET", keys.PATTERNS, "*", "")
elseif problem then
  return redis.error_reply(problem)
end
if own and not last then
  redis.call("SET", keys.SEQ, ("0"):rep(serial.DIGITS) .. own)
end
return meta.SCHEMA
