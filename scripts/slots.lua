-- Slots of registered workers for jobs of other partitions of a system; and who has room. For JQ masters.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {jobs: [[worker, id, token, ms], ...], limit?} or {worker}
-- Reply  {[1 or 0, ...], worker id, url, secrets, key, document {queues, refused, free, max_jobs}, ...}; of a worker
--        {job id, token, ...}
-- Errors INVALID field
-- Cost   for each job, pool and worker that is told some commands
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local pool = require "jqlua.pick.pool"
local slots = require "jqlua.pick.slots"
local transition = require "jqlua.life.transition"
local worker = require "jqlua.pick.worker"

local MOST_MS = 1e13

local spec, problem = arguments.spec("jobs limit worker")
if not spec then
  return redis.error_reply(problem)
end
if spec.worker ~= nil then
  if not (check.is_name(spec.worker) and worker.is_id(spec.worker)) then
    problem = check.problem("worker", "the id of a registered worker", spec.worker)
  elseif spec.jobs ~= nil or spec.limit ~= nil then
    problem = "INVALID worker: expected it alone"
  end
  return problem and redis.error_reply(problem) or slots.of(spec.worker)
end
local limit = spec.limit == nil and 100 or spec.limit
if not check.is_list(spec.jobs, 0, 1000) then
  problem = check.problem("jobs", "a list of at most 1000 lists [worker, id, token, ms]", spec.jobs)
elseif not check.is_integer(limit, 0, 1000) then
  problem = check.problem("limit", "an integer from 0 to 1000", limit)
end
for i = 1, problem and 0 or #spec.jobs do
  local one, path = spec.jobs[i], "jobs[" .. i - 1 .. "]"
  if not check.is_list(one, 4, 4) then
    problem = check.problem(path, "a list [worker, id, token, ms]", one)
  elseif not (check.is_name(one[1]) and worker.is_id(one[1])) then
    problem = check.problem(path .. "[0]", "the id of a registered worker", one[1])
  elseif not check.is_id(one[2]) then
    problem = check.problem(path .. "[1]", check.ID, one[2])
  elseif not check.is_token(one[3]) then
    problem = check.problem(path .. "[2]", check.TOKEN, one[3])
  elseif not check.is_integer(one[4], 0, MOST_MS) then
    problem = check.problem(path .. "[3]", "milliseconds from 0 to 10^13", one[4])
  end
  if problem then
    break
  end
end
if problem then
  return redis.error_reply(problem)
end

local answers = {}
for i, one in ipairs(spec.jobs) do
  local id, job_id, token, ms = unpack(one)
  local is_kept = ms > 0 and slots.keep(id, job_id, token, ms) or ms == 0 and slots.free(id, job_id, token)
  answers[i] = is_kept and 1 or 0
end
local reply = { answers }
local pools = limit > 0 and pool.with_room() or {}
for _, one in ipairs(pools) do
  for _, id in ipairs(redis.call("ZRANGE", keys.POOL .. one.key, 0, math.max(1, math.floor(limit / #pools)) - 1)) do
    local record, n = worker.load(id), #reply
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = id, record.u, record.s or "", record.a or ""
    reply[n + 5] = cmsgpack.pack({
      queues = record.q, refused = record.r, free = record.m - redis.call("ZCARD", keys.HELD .. id),
      max_jobs = record.m,
    })
  end
end
transition.commit()
return reply
