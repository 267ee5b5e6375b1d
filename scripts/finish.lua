-- Takes the outcomes of attempts, and gives the worker its next jobs in the same round trip.
--
-- An answer is a state, LOST, CANCELLED, NOTFOUND or CONFLICT. Behind the blob of an outcome with `enqueue: n` stand n
-- pairs of a job's spec and its argument; its answer is then {state, id, created, id, created, ...}.
--
-- @arg    worker    worker                who ran them
-- @arg    outcomes  list<Outcome>? 0..1000  each with its result or error behind it
-- @arg    pick      Pick?                 the next jobs are wanted, as pick takes it, without the worker
-- @argv   spec, outcomes...
-- @reply  finished                      {answer, ...}, with pick followed by its reply
-- @errors INVALID outcomes[i].field, INVALID outcomes[i].enqueue[j].field, INVALID pick.field, NOTFOUND worker,
--         NOTFOUND outcomes[i].enqueue[j].depends[k], NOTFOUND outcomes[i].resume.depends[k], FULL pick.queues
-- @cost   for each outcome its part of one MGET, MSET, ZREM and ZADD
-- @flags  drain, function
-- @role   worker
-- @http   POST /done (worker, outcomes!, pick) | outcomes[0] -> Finished 200 204
-- @header worker-id = worker  the id from `POST /worker`; to pull, any name will do
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local following = require "jqlua.life.following"
local attempt = require "jqlua.life.attempt"
local keys = require "jqlua.base.keys"
local job = require "jqlua.job.record"
local outcome = require "jqlua.life.outcome"
local picker = require "jqlua.pick.picker"
local plans = require "jqlua.pick.plan"
local queue = require "jqlua.queue.record"
local transition = require "jqlua.life.transition"
local worker = require "jqlua.pick.worker"

local MOST_OUTCOMES = 1000
local call, problem, token, before = outcome.read_call(ARGV[1])
if not call then
  return redis.error_reply(problem)
end
local count = (#ARGV - 1) / 2
if count % 1 ~= 0 or count > MOST_OUTCOMES or (count == 0 and not call.wish) then
  return redis.error_reply("INVALID outcomes: expected " .. (call.wish and 0 or 1) .. " to " .. MOST_OUTCOMES
    .. " outcomes, each with its blob, got " .. #ARGV - 1 .. " arguments")
end
local outcomes, blobs, wanted = { nil }, { nil }, { nil, nil }
local at, i = 2, 0
while at <= #ARGV do
  local said
  i = i + 1
  said, problem = outcome.parse(ARGV[at], i - 1)
  if problem then
    return redis.error_reply(problem)
  end
  blobs[i] = ARGV[at + 1]
  if blobs[i] == "" then
    return redis.error_reply("INVALID outcomes[" .. i - 1 .. "].blob: expected one MessagePack value, got no bytes")
  end
  at = at + 2
  if said.enqueue then
    problem = following.parse(said, i - 1, at)
    if problem then
      return redis.error_reply(problem)
    end
    at = at + 2 * said.enqueue
  end
  outcomes[i] = said
  wanted[i] = keys.JOB .. said.id
end
count = i
local queue_wanted = call.wish and call.wish.queue
if queue_wanted then
  wanted[count + 1] = queue.record_key(queue_wanted)
end
local raws, plan
problem, raws = meta.open(unpack(wanted))
if not problem and call.wish then
  plan, problem = plans.new(call.wish, token, before)
end
for n = 1, problem and 0 or count do
  local said = outcomes[n]
  if not raws[n + 1] and not check.is_id(said.id) then -- only what is not there can be no id at all
    problem = check.problem("outcomes[" .. n - 1 .. "].id", check.ID, said.id)
    break
  end
  problem = problem or (said.jobs or said.resume) and following.check(said, n - 1)
end
if problem then
  return redis.error_reply(problem)
end

if queue_wanted then
  queue.decode(queue_wanted, raws[count + 2])
end
local answers = { nil, nil }
for n = 1, count do
  local said = outcomes[n]
  -- It may be named twice, and what follows may name it as well.
  answers[n] = said.is_plain and attempt.succeed_plain(said, wanted[n], raws[n + 1], count == 1 and not token)
    or outcome.apply(job.note(said.id, raws[n + 1]), said, blobs[n])
end
if plan then
  return picker.run(plan, answers)
end
transition.commit()
if worker.ID_SIZES[#call.worker] and worker.is_alive(call.worker) then
  transition.commit()
end
return answers
