-- Brings a namespace of one of the two schemas before up to this one. It is in force at once; jobs that schema 2 stored
-- come into the indexes in steps, by the sweeps that follow. Changes nothing where there is nothing to do.
-- KEYS   namespace, namespace:meta
-- ARGV   none
-- Reply  schema version of the namespace
-- Errors INVALID KEYS, INVALID arguments, VERSION
-- Cost   constant; afterwards up to 40 jobs every five milliseconds, until all were looked at
-- Flags: write
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local due = require "jqlua.base.due"
local migration = require "jqlua.upkeep.migration"
local transition = require "jqlua.life.transition"

if #KEYS == 2 and KEYS[2] == keys.META and #ARGV > 0 then
  return redis.error_reply("INVALID arguments: expected none, got " .. #ARGV)
end
local problem, raws = meta.open()
if problem and #KEYS == 2 and KEYS[2] == keys.META and migration.is_before(raws[1]) then
  migration.begin(raws[1])
  meta.open()
  if meta.has(meta.MIGRATING) then
    due.note(due.MIGRATION, meta.state[meta.NOW_MS])
    transition.commit()
  end
elseif problem then
  return redis.error_reply(problem)
end
return meta.SCHEMA
