-- Takes running jobs away from their workers; they wait again, and no retry is spent.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids, delay?, actor?} or {queue, count?, delay?, actor?}
-- Reply  for each job queued or scheduled, or NOTFOUND, or CONFLICT (it does not run); of a queue {kicked, more}
-- Errors INVALID field, NOTFOUND queue
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local attempt = require "jqlua.life.attempt"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local queue = require "jqlua.queue.record"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local MOST = 1000

local spec, problem = arguments.operators("ids queue count delay")
if not spec then
  return redis.error_reply(problem)
end
if (spec.ids == nil) == (spec.queue == nil) then
  return redis.error_reply("INVALID ids: expected either ids or queue")
elseif spec.ids ~= nil then
  problem = arguments.check_ids(spec.ids) or spec.count ~= nil and "INVALID count: only a queue has it"
elseif not check.is_name(spec.queue) or glob.is_pattern(spec.queue) then
  problem = check.problem("queue", check.NAME .. ", no *", spec.queue)
elseif spec.count ~= nil and not check.is_integer(spec.count, 1, MOST) then
  problem = check.problem("count", "an integer from 1 to " .. MOST, spec.count)
end
if spec.delay ~= nil and not check.is_number(spec.delay, 0, 1e10) then
  problem = problem or check.problem("delay", "seconds from 0 to 10^10", spec.delay)
end
if problem then
  return redis.error_reply(problem)
end

local kicked = 0

local function kick(of)
  kicked = kicked + 1
  transition.tell_worker(of, "kicked")
  return attempt.give_back(of, spec.delay or 0)
end

local answers = {}
if spec.ids then
  for i, id in ipairs(spec.ids) do
    local of = job.read(id)
    answers[i] = not of and "NOTFOUND" or of[job.STATE] ~= states.RUNNING and "CONFLICT" or kick(of)
  end
else
  local count, owner = spec.count or 100, queue.load(spec.queue)
  if owner[queue.IS_NEW] then
    return redis.error_reply(check.missing("queue", "queue", spec.queue))
  end
  local running = redis.call("ZRANGE", queue.key(owner, states.RUNNING), 0, count)
  local seen = 0
  while seen < math.min(count, #running) and budget.is_left() do
    seen = seen + 1
    local of = job.read(running[seen])
    if of then
      local price = 2 * budget.of_job(of)
      kick(of)
      budget.pay(price + budget.of_job(of))
    end
  end
  answers = { seen, #running > seen and 1 or 0 }
end
trail.note_jobs("kick", spec, kicked)
transition.commit()
return answers
