-- Creates a namespace; changes nothing if it is there.
--
-- @argv   nothing
-- @reply  {schema: integer}             the namespace's version of what is stored
-- @errors INVALID KEYS, INVALID namespace, VERSION, CONFLICT (an import has begun)
-- @flags  write
-- @role   admin
-- @over   all
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local partition = require "jqlua.base.partition"
local serial = require "jqlua.base.serial"
local settingspec = require "jqlua.settings.settingspec"

check.refuse(meta.name_problem() or #ARGV > 0 and "INVALID arguments: expected none, got " .. #ARGV)
if redis.call("EXISTS", keys.META) == 0 then
  local noted = redis.call("GET", keys.IMPORT)
  check.refuse(noted and noted:sub(1, 4) ~= "done"
    and "CONFLICT an import into namespace " .. KEYS[1] .. " has begun: complete it, or remove its keys")
  redis.call("SET", keys.META, struct.pack(meta.FORMAT, meta.SCHEMA, 0, 0, meta.NONE, 0, 0, meta.new_secret())
    .. settingspec.packed(settingspec.defaults()))
  -- The index of all queues is built now, while it costs nothing.
  redis.call("HSET", keys.PATTERNS, "*", "")
  -- Ids of a partition have its number from the first on; those of partition 0 are as everywhere.
  local _, number = partition.of(KEYS[1])
  if number > 0 then
    redis.call("SET", keys.SEQ, ("0"):rep(serial.DIGITS) .. string.format("%02x", number), "NX")
  end
else
  meta.open()
end
return meta.SCHEMA
