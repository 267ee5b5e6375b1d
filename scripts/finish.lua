-- Takes the outcomes of attempts, and gives the worker its next jobs in the same round trip.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker, pick?}, then outcome, blob, outcome, blob, ...   0 to 1000 outcomes; behind the blob of one
--        with enqueue: n, n pairs of spec and argument
-- Reply  {answer, ...}, with pick followed by its reply: {answer, ..., next_ms, document, argument, ...}; an answer
--        is a state, or LOST, CANCELLED, NOTFOUND, or with enqueue {state, id, created, id, created, ...}
-- Errors INVALID outcomes[i].field, INVALID outcomes[i].enqueue[j].field, INVALID pick.field, NOTFOUND worker,
--        NOTFOUND outcomes[i].enqueue[j].depends[k]
-- Cost   for each outcome its part of one MGET, MSET, ZREM and ZADD
-- Flags: drain, function
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local following = require "jqlua.life.following"
local keys = require "jqlua.base.keys"
local job = require "jqlua.job.record"
local outcome = require "jqlua.life.outcome"
local picker = require "jqlua.pick.picker"
local transition = require "jqlua.life.transition"
local worker = require "jqlua.pick.worker"

local MOST_OUTCOMES = 1000
local spec = ARGV[1] and check.map(ARGV[1])
if not spec then
  return redis.error_reply(check.not_a_map("spec", ARGV[1]))
end
local problem
for field in pairs(spec) do
  if field ~= "worker" and field ~= "pick" then
    return redis.error_reply(check.unknown("", field, "worker pick"))
  end
end
if not check.is_name(spec.worker) then
  return redis.error_reply(check.problem("worker", check.NAME, spec.worker))
end
local plan
if spec.pick ~= nil then
  if type(spec.pick) ~= "table" then
    return redis.error_reply(check.problem("pick", "a map", spec.pick))
  end
  plan, problem = picker.parse(spec.pick, "pick.", spec.worker)
  if problem then
    return redis.error_reply(problem)
  end
end
local count = (#ARGV - 1) / 2
if count % 1 ~= 0 or count > MOST_OUTCOMES or (count == 0 and not plan) then
  return redis.error_reply("INVALID outcomes: expected " .. (plan and 0 or 1) .. " to " .. MOST_OUTCOMES
    .. " outcomes, each with its blob, got " .. #ARGV - 1 .. " arguments")
end
local outcomes, blobs = {}, {}
local wanted = {}
local at = 2
while at <= #ARGV do
  local i = #outcomes + 1
  local said
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
count = #outcomes
local raws
problem, raws = meta.open(unpack(wanted))
problem = problem or plan and picker.resolve(plan)
for i = 1, count do
  problem = problem or outcomes[i].jobs and following.check(outcomes[i], i - 1)
end
if problem then
  return redis.error_reply(problem)
end

for i = 1, count do
  -- Only what is not there can be no id at all.
  if not raws[i + 1] and not check.is_id(outcomes[i].id) then
    return redis.error_reply(check.problem("outcomes[" .. i - 1 .. "].id", check.ID, outcomes[i].id))
  end
end

local answers = {}
for i = 1, count do
  local said = outcomes[i]
  -- It may be named twice, and what follows may name it as well.
  answers[i] = outcome.apply(job.note(said.id, raws[i + 1]), said, blobs[i])
end
transition.commit()
if plan then
  return picker.run(plan, answers)
end
if #spec.worker == worker.ID_SIZE and worker.is_alive(spec.worker) then
  transition.commit()
end
return answers
