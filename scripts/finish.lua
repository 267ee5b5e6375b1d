-- Takes the outcomes of attempts, and gives the worker its next jobs in the same round trip.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker, pick?}, then outcome, blob, outcome, blob, ...   0 to 1000 outcomes
-- Reply  {{answer, ...}} or with pick {{answer, ...}, pick's reply}; an answer is a state, or LOST, CANCELLED, NOTFOUND
-- Errors INVALID outcomes[i].field, INVALID pick.field, NOTFOUND worker
-- Cost   for each outcome one GETRANGE, one SETRANGE and its part of ZREM and ZADD
-- Flags: drain
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local held = require "jqlua.held"
local outcome = require "jqlua.outcome"
local picker = require "jqlua.picker"
local transition = require "jqlua.transition"
local worker = require "jqlua.worker"

local MOST_OUTCOMES = 1000

---@cold
local function parse_pick(spec, holder)
  if type(spec) ~= "table" then
    return nil, check.problem("pick", "a map", spec)
  end
  return picker.parse(spec, "pick.", holder)
end

---@cold
local function run_pick(plan)
  return picker.run(plan)
end

local problem = meta.open()
if problem then
  return redis.error_reply(problem)
end
local spec = ARGV[1] and check.map(ARGV[1])
if not spec then
  return redis.error_reply(check.not_a_map("spec", ARGV[1]))
end
for field in pairs(spec) do
  if field ~= "worker" and field ~= "pick" then
    return redis.error_reply(check.unknown("", field, "worker pick"))
  end
end
problem = held.check_worker(spec.worker)
if problem then
  return redis.error_reply(problem)
end
local plan
if spec.pick ~= nil then
  plan, problem = parse_pick(spec.pick, spec.worker)
  if problem then
    return redis.error_reply(problem)
  end
end
local count = (#ARGV - 1) / 2
if count % 1 ~= 0 or count > MOST_OUTCOMES or (count == 0 and not plan) then
  return redis.error_reply("INVALID outcomes: expected " .. (plan and 0 or 1) .. " to " .. MOST_OUTCOMES
    .. " outcomes, each with its blob, got " .. #ARGV - 1 .. " arguments")
end
local outcomes = {}
for i = 1, count do
  local path = "outcomes[" .. i - 1 .. "]"
  outcomes[i], problem = outcome.parse(ARGV[2 * i], path)
  if problem then
    return redis.error_reply(problem)
  end
  if ARGV[2 * i + 1] == "" then
    return redis.error_reply("INVALID " .. path .. ".blob: expected one MessagePack value, got no bytes")
  end
end

local answers = {}
local seen = {}
for i = 1, count do
  answers[i] = outcome.apply(outcomes[i], ARGV[2 * i + 1], seen)
end
transition.commit()
if plan then
  return { answers, run_pick(plan) }
end
if worker.is_id(spec.worker) and worker.is_registered(spec.worker) then
  worker.seen(spec.worker)
  transition.commit()
end
return { answers }
