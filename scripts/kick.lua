-- Takes running jobs away from their workers. They wait again, and no retry is spent.
--
-- The workers are told. Of ids the reply has for each queued or scheduled, NOTFOUND, or CONFLICT: it does not run.
--
-- @arg    ids     list<job>? 1..1000      the jobs; or
-- @arg    queue   queue?                  the running jobs of a queue; or
-- @arg    worker  worker?                 the jobs of a worker
-- @arg    count   integer? 1..1000 = 100  how many of a queue or a worker, at most
-- @arg    delay   seconds? 0..1e10        how long before they are ready
-- @arg    actor   actor?
-- @reply  states jobs
-- @reply  {kicked: integer, more: flag} with queue, worker
-- @errors INVALID field, NOTFOUND queue, NOTFOUND worker
-- @conflict it does not run
-- @flags  drain
-- @room   any
-- @once
-- @role   operator
-- @over   jobs
-- @http   POST /jobs/kick (ids!, delay)
-- @http   POST /job/{ids[0]}/kick (delay)
-- @http   POST /queue/{queue}/kick (count, delay)
-- @http   POST /worker/{worker}/kick (count, delay)
local arguments = require "jqlua.base.arguments"
local attempts = require "jqlua.life.attempts"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local keys = require "jqlua.base.keys"
local unregistered = require "jqlua.workers.unregistered"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local spec = arguments.spec(HEAD)
local ways = (spec.ids and 1 or 0) + (spec.queue and 1 or 0) + (spec.worker and 1 or 0)
check.refuse(ways ~= 1 and "INVALID ids: expected either ids, queue or worker")
check.refuse(spec.ids and spec.count and "INVALID count: only valid with queue or worker")

local kicked = 0

local function kick(job)
  kicked = kicked + 1
  transition.notify_worker(job, "kicked")
  return attempts.release(job, spec.delay or 0)
end

--- The ids of a queue's running jobs: one more than requested if there are more.
local function of_queue(name, count)
  local queue = queues.load(name)
  check.refuse(queue[queues.IS_NEW] and check.missing("queue", "queue", name))
  return redis.call("ZRANGE", queues.key(queue, states.RUNNING), 0, count)
end

--- The same of a worker; of an unregistered one, the jobs that it last announced.
local function of_worker(name, count)
  if workers.is_id(name) and workers.is_registered(name) then
    return redis.call("ZRANGE", keys.HELD .. name, 0, count)
  end
  local other = unregistered.load(name)
  check.refuse(not other and check.missing("worker", "worker", name))
  local ids = {}
  for i, pair in ipairs(unregistered.running(other)) do
    ids[i] = i <= count + 1 and pair[1] or nil
  end
  return ids
end

local answers = {}
if spec.ids then
  for i, id in ipairs(spec.ids) do
    local job = jobs.read(id)
    answers[i] = not job and "NOTFOUND" or job[jobs.STATE] ~= states.RUNNING and "CONFLICT" or kick(job)
  end
else
  local count = spec.count or 100
  local running = spec.worker and of_worker(spec.worker, count) or of_queue(spec.queue, count)
  local seen = 0
  while seen < math.min(count, #running) and budget.is_left() do
    seen = seen + 1
    local job = jobs.read(running[seen])
    if job and job[jobs.STATE] == states.RUNNING then
      local price = 2 * budget.of_job(job)
      kick(job)
      budget.pay(price + budget.of_job(job))
    end
  end
  answers = { seen, #running > seen and 1 or 0 }
end
trail.note_jobs("kick", spec, kicked)
transition.commit()
return answers
