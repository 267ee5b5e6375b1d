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
-- @role   worker
-- @bound  any
-- @over   finish
-- @http   POST /done
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local continuation = require "jqlua.life.continuation"
local keys = require "jqlua.base.keys"
local outcomes = require "jqlua.life.outcomes"
local picker = require "jqlua.pick.picker"
local transition = require "jqlua.life.transition"
local wishes = require "jqlua.pick.wishes"
local workers = require "jqlua.workers.workers"

local MOST_OUTCOMES = 1000
local wish, token = wishes.of_finish()
local last = #ARGV
if last % 2 == 0 or last > 2 * MOST_OUTCOMES + 1 or last == 1 and not wish.wanted then
  check.refuse("INVALID outcomes: expected " .. (wish.wanted and 0 or 1) .. " to " .. MOST_OUTCOMES
    .. " outcomes, each with its blob, got " .. last - 1 .. " arguments")
end
local parsed, wanted = { nil }, { nil, nil, nil, nil }
local at, count, has_jobs = 2, 0, false
while at <= last do
  local outcome = outcomes.parse(ARGV[at], ARGV[at + 1], count)
  count = count + 1
  parsed[count], wanted[count] = outcome, keys.JOB .. outcome.id
  at = at + 2
  if outcome.enqueue then
    continuation.parse(outcome, count - 1, at)
    at = at + 2 * outcome.enqueue
  end
  has_jobs = has_jobs or outcome.enqueue or outcome.resume
end
meta.open()
local raws = count == 1 and { redis.call("GET", wanted[1]) } or count > 0 and redis.call("MGET", unpack(wanted))
local answers = { nil, nil, nil, nil }
local plan, is_known
if wish.wanted then
  plan = picker.prepare(wish, token, answers)
elseif wish.is_registered then -- read before the outcomes, which may change the record
  is_known = workers.load(wish.worker)
end
local found = outcomes.find_all(parsed, raws, has_jobs, answers)
for n = 1, has_jobs and count or 0 do
  continuation.check(parsed[n], n - 1)
end
local works = false
for n = 1, count do
  answers[n] = answers[n] or outcomes.apply(found[n], parsed[n])
  works = works or found[n]
end
if plan then
  return picker.pick(plan)
end
if is_known then
  workers.came_by(wish.worker, works)
end
transition.commit()
return answers
