-- Renews the leases of jobs that a worker runs, and shows that a registered one is alive.
--
-- The reply has for each job the ms of the renewed lease, LOST, or CANCELLED.
--
-- @arg    worker     worker
-- @arg    jobs       NotedLeases 0..1000   [id, token], or with what the job says of itself [id, token, notes]
-- @arg    control    flag?                 what is asked of the worker as well: quiet, stop or ""
-- @arg    arguments  list<value>?          arguments for next attempts, which notes name by their place
-- @argv   spec, arguments...
-- @reply  states jobs
-- @reply  {jobs: states, request: text} with control
-- @errors INVALID field, NOTFOUND worker
-- @flags  drain, function
-- @role   worker
-- @bound  any
-- @over   jobs
-- @http   POST /worker/heartbeat
local arguments = require "jqlua.base.arguments"
local failure = require "jqlua.life.failure"
local notes = require "jqlua.life.notes"
local held_jobs = require "jqlua.life.held_jobs"
local jobs = require "jqlua.job.jobs"
local attempts = require "jqlua.life.attempts"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local spec = arguments.spec(HEAD, true)
held_jobs.check(spec.jobs, 0, 3)
notes.check(spec.jobs)
local is_registered = workers.is_id(spec.worker)
if is_registered then
  workers.registered(spec.worker)
end

local answers, ids = {}, {}
for i, pair in ipairs(spec.jobs) do
  ids[i] = pair[1]
end
jobs.fetch(ids)
for i, pair in ipairs(spec.jobs) do
  local job = jobs.read(pair[1])
  if job and attempts.is_running(job, pair[2]) then
    local left_ms = attempts.renew(job)
    local is_over = left_ms <= 0
    if pair[3] and not is_over then
      notes.write(job, pair[3])
    end
    if is_over then
      failure.lapse(job)
    end
    answers[i] = is_over and "LOST" or left_ms
  else
    answers[i] = job and attempts.stale_answer(job, pair[2], "") or "LOST"
  end
end
if is_registered then
  workers.seen(spec.worker)
  if not workers.load(spec.worker).u then
    workers.name_jobs(spec.worker, ids)
  end
end
transition.commit()
if spec.control then
  local record = is_registered and workers.load(spec.worker)
  return { answers, record and record.k or "" }
end
return answers
