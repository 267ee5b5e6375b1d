-- Renews the leases of the jobs a worker holds, and marks a registered worker as alive.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker, jobs: [[id, attempt], ...]}
-- Reply  for each job the ms of the renewed lease, or LOST, or CANCELLED
-- Errors INVALID field, NOTFOUND worker
-- Cost   for each job one GETRANGE and its part of a ZADD
-- Flags: drain
local arguments = require "jqlua.arguments"
local meta = require "jqlua.meta"
local held = require "jqlua.held"
local job = require "jqlua.job"
local batch = require "jqlua.batch"
local queue = require "jqlua.queue"
local attempt = require "jqlua.attempt"
local transition = require "jqlua.transition"
local worker = require "jqlua.worker"

local spec, problem = arguments.spec("worker jobs")
if not spec then
  return redis.error_reply(problem)
end
problem = held.check_worker(spec.worker) or held.check(spec.jobs, 0)
if problem then
  return redis.error_reply(problem)
end
local is_registered = worker.is_id(spec.worker)
if is_registered and not worker.is_registered(spec.worker) then
  return redis.error_reply("NOTFOUND worker: " .. spec.worker .. " is not registered, or was dropped as dead")
end

local answers = {}
for i, pair in ipairs(spec.jobs) do
  local of = job.read(pair[1])
  if of and attempt.runs(of, pair[2]) then
    local owner = queue.load(of[job.QUEUE])
    local until_ms = meta.state[meta.NOW_MS] + of[job.TIMEOUT_MS]
    batch.add(queue.key(owner, "r"), until_ms, of[job.ID])
    -- Earlier than before only if the clock was set back.
    queue.note_due(owner, queue.DUE_RUNNING, until_ms)
    answers[i] = of[job.TIMEOUT_MS]
  else
    answers[i] = of and attempt.ended_how(of, pair[2]) == "c" and "CANCELLED" or "LOST"
  end
end
if is_registered then
  worker.seen(spec.worker)
end
transition.commit()
return answers
