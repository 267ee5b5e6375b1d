-- Takes the outcomes of attempts, and gives the worker its next jobs in the same round trip.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker, pick?}, then outcome, blob, outcome, blob, ...   0 to 1000 outcomes; behind the blob of one
--        with enqueue: n, n pairs of spec and argument
-- Reply  {answer, ...}, with pick followed by its reply: {answer, ..., next_ms, document, argument, ...}; an answer is
--        a state, or LOST, CANCELLED, NOTFOUND, or with enqueue {state, id, created, id, created, ...}
-- Errors INVALID outcomes[i].field, INVALID outcomes[i].enqueue[j].field, INVALID pick.field, NOTFOUND worker,
--        NOTFOUND outcomes[i].enqueue[j].depends[k], NOTFOUND outcomes[i].resume.depends[k], FULL pick.queues
-- Cost   for each outcome its part of one MGET, MSET, ZREM and ZADD
-- Flags: drain, function
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
