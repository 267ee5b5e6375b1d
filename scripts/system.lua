-- Tells the record of the system that the namespace is a partition of, or replaces it.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {}; or spec {from?} and a record
-- Reply  {generation, record}, as they are then; {0, ""} without one
-- Errors INVALID field, VERSION record, CONFLICT from
-- Cost   of a record's size, some 3 kB
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local elsewhere = require "jqlua.links.elsewhere"
local keys = require "jqlua.base.keys"
local systemrecord = require "jqlua.links.systemrecord"

local spec, problem = arguments.spec("from", true)
if not spec then
  return redis.error_reply(problem)
elseif #ARGV > 2 then
  return redis.error_reply("INVALID arguments: expected a spec, or one and a record, got " .. #ARGV)
elseif spec.from ~= nil and not check.is_integer(spec.from, 0, elsewhere.MOST_GENERATIONS) then
  return redis.error_reply(check.problem("from", "a generation, an integer from 0 to 10^15", spec.from))
elseif spec.from ~= nil and #ARGV ~= 2 then
  return redis.error_reply("INVALID record: expected one that comes after generation "
    .. string.format("%d", spec.from) .. ", got nothing")
end
local old
old, problem = elsewhere.record()
local generation = old and old.generation or 0
if ARGV[2] and not problem then
  local new
  new, problem = systemrecord.read(ARGV[2])
  if problem then
    return redis.error_reply(problem)
  elseif spec.from and (spec.from ~= generation or new.generation ~= generation + 1) then
    return redis.error_reply("CONFLICT from: the record here is of generation " .. string.format("%d", generation))
  elseif new.generation > generation then
    redis.call("SET", keys.SYSTEM, ARGV[2])
    redis.call("SET", keys.GENERATION, string.format("%d", new.generation))
    elsewhere.note(new)
    generation = new.generation
  end
end
if problem then
  return redis.error_reply(problem)
end
return { generation, redis.call("GET", keys.SYSTEM) or "" }
