-- Takes running jobs away from their workers. They wait again, and no retry is spent.
--
-- The workers are told. Of ids the reply has for each queued or scheduled, NOTFOUND, or CONFLICT: it does not run.
--
-- @arg    ids     list<job>? 1..1000      the jobs; or
-- @arg    queue   queue?                  all that run of a queue; or
-- @arg    worker  worker?                 all that a worker runs
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
local glob = require "jqlua.base.glob"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local keys = require "jqlua.base.keys"
local unregistered = require "jqlua.pick.unregistered"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.pick.workers"

local MOST = 1000

local spec = arguments.operators("ids queue worker count delay")
local problem
local ways = (spec.ids ~= nil and 1 or 0) + (spec.queue ~= nil and 1 or 0) + (spec.worker ~= nil and 1 or 0)
if ways ~= 1 then
  return redis.error_reply("INVALID ids: expected either ids, queue or worker")
elseif spec.ids ~= nil then
  problem = arguments.check_ids(spec.ids) or spec.count ~= nil and "INVALID count: only valid with queue or worker"
elseif spec.worker ~= nil and not check.is_name(spec.worker) then
  problem = check.problem("worker", check.NAME, spec.worker)
elseif spec.queue ~= nil and (not check.is_name(spec.queue) or glob.is_pattern(spec.queue)) then
  problem = check.problem("queue", check.NAME .. ", no *", spec.queue)
elseif spec.count ~= nil and not check.is_integer(spec.count, 1, MOST) then
  problem = check.problem("count", "an integer from 1 to " .. MOST, spec.count)
end
if spec.delay ~= nil and not check.is_number(spec.delay, 0, 1e10) then
  problem = problem or check.problem("delay", "seconds from 0 to 10^10", spec.delay)
end
check.refuse(problem)

local kicked = 0

local function kick(job)
  kicked = kicked + 1
  transition.notify_worker(job, "kicked")
  return attempts.release(job, spec.delay or 0)
end

--- The ids of a queue's running jobs: one more than requested if there are more.
local function of_queue(name, count)
  local queue = queues.load(name)
  if queue[queues.IS_NEW] then
    return nil, check.missing("queue", "queue", name)
  end
  return redis.call("ZRANGE", queues.key(queue, states.RUNNING), 0, count)
end

--- The same of a worker; of an unregistered one, the jobs that it last announced.
local function of_worker(name, count)
  if workers.is_id(name) and workers.is_registered(name) then
    return redis.call("ZRANGE", keys.HELD .. name, 0, count)
  end
  local other = unregistered.load(name)
  if not other then
    return nil, check.missing("worker", "worker", name)
  end
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
  local running, missing
  if spec.worker then
    running, missing = of_worker(spec.worker, count)
  else
    running, missing = of_queue(spec.queue, count)
  end
  check.refuse(not running and missing)
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
