-- Shows and changes a queue: pauses it, resumes it, limits it. Creates one that is not known yet.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {name, paused?, max_waiting?}
-- Reply  document
-- Errors INVALID field
-- Flags: write
local arguments = require "jqlua.arguments"
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local glob = require "jqlua.glob"
local queue = require "jqlua.queue"
local queuedoc = require "jqlua.queuedoc"
local transition = require "jqlua.transition"

local spec, problem = arguments.spec("name paused max_waiting")
if not spec then
  return redis.error_reply(problem)
end
if not check.is_name(spec.name) or glob.is_pattern(spec.name) then
  return redis.error_reply(check.problem("name", check.NAME .. ", no *", spec.name))
elseif spec.paused ~= nil and type(spec.paused) ~= "boolean" then
  return redis.error_reply(check.problem("paused", "true or false", spec.paused))
elseif spec.max_waiting ~= nil and not check.is_integer(spec.max_waiting, 0, 4294967295) then
  return redis.error_reply(check.problem("max_waiting", "an integer from 0 (no limit) to 4294967295", spec.max_waiting))
end

local owner = queue.load(spec.name)
if owner[queue.IS_NEW] then
  owner[queue.CHANGED] = true
end
if spec.max_waiting then
  owner[queue.MAX_WAITING] = spec.max_waiting
  owner[queue.CHANGED] = true
end
if spec.paused and owner[queue.PAUSED] == 0 then
  owner[queue.PAUSED] = 1
  queue.set_head(owner, meta.NONE)
elseif spec.paused == false and owner[queue.PAUSED] ~= 0 then
  owner[queue.PAUSED] = 0
  owner[queue.CHANGED] = true
  local first = redis.call("ZRANGE", queue.key(owner, "q"), 0, 0, "WITHSCORES")
  if first[1] then
    queue.set_head(owner, tonumber(first[2]), first[1])
    transition.reopen(owner)
  end
end
transition.commit()
return queuedoc.encode(owner)
