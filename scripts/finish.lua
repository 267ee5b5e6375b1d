-- Takes the outcomes of attempts, and gives the worker its next jobs in the same round trip.
--
-- The answer to an outcome is a state, LOST, CANCELLED or NOTFOUND. Jobs that follow it are enqueued in the same step.
--
-- @arg    worker    worker                who ran them
-- @arg    outcomes  list<Outcome>? 0..1000  each with its result or error behind it; with `enqueue: n`, behind that n
--         jobs, each with its argument
-- @arg    pick      Pick?                 the next jobs are wanted, as pick takes it, without the worker
-- @argv   spec, outcomes...
-- @reply  finished                      {answer, ...}, {state, id, created, id, created, ...} where jobs follow; with
--         pick its reply behind them
-- @errors INVALID outcomes[i].field, INVALID outcomes[i].enqueue[j].field, INVALID pick.field, NOTFOUND worker,
--         NOTFOUND outcomes[i].enqueue[j].depends[k], NOTFOUND outcomes[i].resume.depends[k], FULL pick.queues
-- @flags  drain, function
-- @room   worker
-- @role   worker
-- @bound  any
-- @over   finish
-- @http   POST /done (worker, outcomes!, pick) -> Finished
-- @header worker-id = worker  the id from `POST /worker`; to pull, any name will do
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local continuation = require "jqlua.life.continuation"
local keys = require "jqlua.base.keys"
local finish_call = require "jqlua.pick.finish_call"
local jobs = require "jqlua.job.jobs"
local outcomes = require "jqlua.life.outcomes"
local picker = require "jqlua.pick.picker"
local plans = require "jqlua.pick.plans"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local MOST_OUTCOMES = 1000
local call, problem, token = finish_call.read(ARGV[1])
check.refuse(not call and problem)
local most = (#ARGV - 1) / 2
if most % 1 ~= 0 or most > MOST_OUTCOMES or (most == 0 and not call.wish) then
  return redis.error_reply("INVALID outcomes: expected " .. (call.wish and 0 or 1) .. " to " .. MOST_OUTCOMES
    .. " outcomes, each with its blob, got " .. #ARGV - 1 .. " arguments")
end
local parsed, blobs, wanted = { nil }, { nil }, { nil, nil, nil, nil }
local at, last, count = 2, #ARGV, 0
while at <= last do
  local outcome
  outcome, problem = outcomes.parse(ARGV[at], count)
  check.refuse(problem)
  count = count + 1
  parsed[count], blobs[count], wanted[count] = outcome, ARGV[at + 1], keys.JOB .. outcome.id
  if blobs[count] == "" then
    return redis.error_reply("INVALID outcomes[" .. count - 1 .. "].blob: expected one MessagePack value, got no bytes")
  end
  at = at + 2
  if outcome.enqueue then
    check.refuse(continuation.parse(outcome, count - 1, at))
    at = at + 2 * outcome.enqueue
  end
end
if call.wish then
  plans.keys(call.wish, token, wanted)
elseif call.is_registered then
  wanted[count + 1] = keys.WORKER .. call.worker
end
local raws, plan
raws = meta.open(unpack(wanted))
if call.wish then
  plan, problem = plans.new(call.wish, token, raws, count + 2)
  check.refuse(problem)
end
for n = 1, count do
  local outcome = parsed[n]
  if not raws[n + 1] and not check.is_id(outcome.id) then -- an existing job has a valid id
    check.refuse(check.problem("outcomes[" .. n - 1 .. "].id", check.ID, outcome.id))
  elseif outcome.jobs or outcome.resume then
    check.refuse(continuation.check(outcome, n - 1))
  end
end

-- Read before the outcomes, which may change the record.
local is_known = not plan and call.is_registered and workers.decode(call.worker, raws[count + 2])
local answers = { nil, nil, nil, nil }
for n = 1, count do
  answers[n] = outcomes.apply(jobs.from_record(parsed[n].id, raws[n + 1]), parsed[n], blobs[n])
end
if plan then
  return picker.pick(plan, answers)
end
if is_known then
  workers.came_by(call.worker)
end
transition.commit()
return answers
