-- What enqueue would find of jobs: those that have a unique key of them, and what it answered to this call before. Of
-- partitions that had a bucket, before the one that has it now makes jobs.
-- KEYS   namespace, namespace:meta
-- ARGV   options {request?, generation?}, spec, argument, spec, argument, ...   as of enqueue
-- Reply  {id, created, id, created, ...} in order; "", 0 for those whose key is free, or that have none
-- Errors INVALID jobs[i].field, ROUTE generation (an earlier one than here, or a later one)
-- Cost   as of enqueue
-- Flags: write
local arrival = require "jqlua.life.arrival"
local coming = require "jqlua.life.coming"
local elsewhere = require "jqlua.links.elsewhere"
local job = require "jqlua.job.record"
local jobspec = require "jqlua.job.spec"
local meta = require "jqlua.base.meta"
local request = require "jqlua.life.request"
local transition = require "jqlua.life.transition"
local unique = require "jqlua.job.unique"

local MOST_JOBS = 1000
local FIRST = 2
local count = (#ARGV - 1) / 2
if count < 1 or count > MOST_JOBS or count % 1 > 0 then
  return redis.error_reply("INVALID jobs: expected options and 1 to " .. MOST_JOBS
    .. " specs, each with its argument, got " .. #ARGV .. " arguments")
end
local token, problem, generation = coming.parse_options(ARGV[1])
local jobs = {}
for i = 1, problem and 0 or count do
  jobs[i], problem = jobspec.parse(ARGV[FIRST + 2 * i - 2], i - 1)
  if not problem and ARGV[FIRST + 2 * i - 1] == "" then
    problem = "INVALID jobs[" .. i - 1 .. "].argument: expected one MessagePack value, got no bytes"
  end
  if problem then
    break
  end
end
problem = problem or meta.open()
  or generation and elsewhere.outdated(generation, true)
if problem then
  return redis.error_reply(problem)
end
local digest = token and coming.digest()
if token then
  -- Parts of one call may be asked for here, each by itself.
  local met = request.recall("m", token .. digest)
  local remembered = request.recall("e", token)
  if met or remembered and remembered.digest == digest then
    return met or coming.flat(remembered.reply)
  end
end

--- Whether somebody has its key.
local function is_held(new)
  local key = new[jobspec.IS_LINKED] and job.options(new).unique
  return key ~= nil and key ~= false and unique.holder(key) ~= nil
end

local reply, is_met = {}, false
for i, new in ipairs(jobs) do
  local id, created = "", 0
  if is_held(new) then
    is_met = true
    id, created = arrival.create(new, ARGV[FIRST + 2 * i - 1]) -- it may come behind one that runs
  end
  reply[2 * i - 1], reply[2 * i] = id, created
end
transition.commit()
if token and is_met then
  request.remember("m", token .. digest, reply)
end
return reply
