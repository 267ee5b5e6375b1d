-- Who shares constraints out among the partitions of a system, and what it noted. Partition 0 alone has that.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {lease_ms, generation?} or {lease_ms, epoch, turn, generation?}, and with an epoch a blob: what it notes
-- Reply  {ms until somebody else may, epoch, blob}; of these only the first while another one does
-- Errors INVALID field, INVALID user, CONFLICT epoch, ROUTE generation
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local elsewhere = require "jqlua.links.elsewhere"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local server = require "jqlua.base.server"

local LONGEST_MS = 60000
local MOST_NOTED = 1048576

local spec, problem = arguments.spec("lease_ms epoch turn generation", true)
if not spec then
  return redis.error_reply(problem)
elseif not check.is_integer(spec.lease_ms, 1, LONGEST_MS) then
  return redis.error_reply(check.problem("lease_ms", "an integer from 1 to " .. LONGEST_MS, spec.lease_ms))
end
local is_on = spec.epoch ~= nil or spec.turn ~= nil
problem = is_on and arguments.check_epoch(spec)
  or #ARGV ~= (is_on and 2 or 1) and "INVALID arguments: expected a spec, and with an epoch a blob, got " .. #ARGV
  or is_on and #ARGV[2] > MOST_NOTED and "INVALID noted: expected at most " .. MOST_NOTED .. " bytes, got " .. #ARGV[2]
problem = problem or elsewhere.generation_problem(spec.generation)
  or spec.generation and elsewhere.outdated(spec.generation) -- it knows not all of the partitions
local run_id = server.run_id()
problem = problem or not run_id and "INVALID user: it may not call INFO, by which lost notes are known"
if problem then
  return redis.error_reply(problem)
end
local raw, now = redis.call("GET", keys.BALANCE), meta.state[meta.NOW_MS]
local epoch, turn, until_ms, at, noted = "", 0, 0, "", ""
if raw then
  epoch, turn, until_ms, at, noted = unpack(cmsgpack.unpack(raw))
end
if is_on then
  if spec.epoch ~= epoch or spec.turn < turn or at ~= run_id then
    return redis.error_reply("CONFLICT epoch: another one shares out since, or another server took over")
  end
  turn, noted = spec.turn, ARGV[2]
elseif now < until_ms and until_ms - now <= LONGEST_MS then
  return { until_ms - now }
else
  -- Later ones are greater, also if the last of them were lost. What was noted on another server may be too.
  local last = tonumber(epoch:sub(1, 14), 16) or 0
  epoch = string.format("%014x-%s", math.max(now, last + 1), meta.random())
  turn, noted = 0, at == run_id and noted or ""
end
redis.call("SET", keys.BALANCE, cmsgpack.pack({ epoch, turn, now + spec.lease_ms, run_id, noted }))
return { spec.lease_ms, epoch, noted }
