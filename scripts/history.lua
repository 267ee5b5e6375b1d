-- What happened to a job so far.
-- KEYS   namespace, namespace:meta
-- ARGV   id
-- Reply  document {id, events: [{event, time_ms, attempt?, worker_id?, reason?, group?, message?}, ...], forgotten}
-- Errors INVALID ids, NOTFOUND id
-- Flags: read
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local history = require "jqlua.job.history"
local job = require "jqlua.job.record"

local problem = arguments.ids()
if problem then
  return redis.error_reply(problem)
elseif #ARGV ~= 1 then
  return redis.error_reply("INVALID ids: expected one job id, got " .. #ARGV)
end
local of = job.read(ARGV[1])
if not of then
  return redis.error_reply(check.missing("id", "job", ARGV[1]))
end
return history.encode(of)
