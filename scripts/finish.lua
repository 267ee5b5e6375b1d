-- Takes the outcomes of attempts, and gives the worker its next jobs in the same round trip.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker, pick?}, then outcome, blob, outcome, blob, ...   0 to 1000 outcomes
-- Reply  {{answer, ...}} or with pick {{answer, ...}, pick's reply}; an answer is a state, or LOST, CANCELLED, NOTFOUND
-- Errors INVALID outcomes[i].field, INVALID pick.field, NOTFOUND worker
-- Cost   for each outcome its part of one MGET, MSET, ZREM and ZADD
-- Flags: drain
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local keys = require "jqlua.keys"
local job = require "jqlua.job"
local laned = require "jqlua.laned"
local plain = require "jqlua.plain"
local outcome = require "jqlua.outcome"
local picker = require "jqlua.picker"
local transition = require "jqlua.transition"
local worker = require "jqlua.worker"

local plain_reply, popped, records, done = plain.finish()
if plain_reply and (plain_reply[2] or not popped) then
  return plain_reply
end

---@general
if done then
  plain_reply, popped, records = laned.finish(done)
  if plain_reply and (plain_reply[2] or not popped) then
    return plain_reply
  end
end

---@general
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
if plain_reply then
  -- The outcomes are in; what is left is to pick.
  problem = meta.open()
  problem = problem or picker.resolve(plan)
  if problem then
    return redis.error_reply(problem)
  end
  return { plain_reply[1], picker.run(plan, nil, popped, records) }
end
local outcomes = {}
local wanted = {}
for i = 1, count do
  local said
  said, problem = outcome.parse(ARGV[2 * i], i - 1)
  if problem then
    return redis.error_reply(problem)
  end
  if ARGV[2 * i + 1] == "" then
    return redis.error_reply("INVALID outcomes[" .. i - 1 .. "].blob: expected one MessagePack value, got no bytes")
  end
  outcomes[i] = said
  wanted[i] = keys.JOB .. said.id
end
local raws
problem, raws = meta.open(unpack(wanted))
problem = problem or plan and picker.resolve(plan)
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
local jobs = {}
for i = 1, count do
  local said = outcomes[i]
  local id = said.id
  local of = jobs[id]
  if not of and raws[i + 1] then
    of = job.decode(id, raws[i + 1])
    if count > 1 then
      jobs[id] = of -- may be named twice
    end
  end
  answers[i] = outcome.apply(of, said, ARGV[2 * i + 1])
end
transition.commit()
if plan then
  return { answers, picker.run(plan) }
end
if #spec.worker == worker.ID_SIZE and worker.is_alive(spec.worker) then
  transition.commit()
end
return { answers }
