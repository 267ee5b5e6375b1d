-- Gives a courier letters for other partitions, and takes those back that it brought away.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {courier, count?, wait?, except?}, letter, answer, letter, answer, ...   up to 100 of them
-- Reply  {next_ms, partition, letter, partition, letter, ...}
-- Errors INVALID field
-- Cost   a few commands for each letter, and for each partition that has some
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local elsewhere = require "jqlua.links.elsewhere"
local keys = require "jqlua.base.keys"
local letters = require "jqlua.links.letters"
local mail = require "jqlua.links.mail"
local meta = require "jqlua.base.meta"
local sweep = require "jqlua.life.sweep"
local transition = require "jqlua.life.transition"

local MOST_LETTERS = 100
local MOST_BYTES = 1e6 -- with these a reply is long enough: a letter may have the argument of a job
local MOST_STEPS = 100
local LONGEST_MS = 60000

local call = redis.call

local function check_except(except)
  if not check.is_list(except, 0, 256) then
    return check.problem("except", "a list of at most 256 numbers of partitions", except)
  end
  for i, number in ipairs(except) do
    if not check.is_integer(number, 0, 255) then
      return check.problem("except[" .. i - 1 .. "]", "the number of a partition", number)
    end
  end
end

--- Takes answers apart, before any is looked at.
local function read_answers()
  local answers = {}
  if #ARGV % 2 == 0 or #ARGV > 2 * MOST_LETTERS + 1 then
    return nil, "INVALID letters: expected at most " .. MOST_LETTERS .. ", each with its answer, got " .. #ARGV - 1
      .. " arguments"
  end
  for i = 2, #ARGV, 2 do
    local path = "letters[" .. (i - 2) / 2 .. "]"
    local letter, problem = letters.read(ARGV[i], path)
    if letter and not letters.is_own(letter) then
      problem = "INVALID " .. path .. ": this partition did not write it"
    end
    if problem then
      return nil, problem
    end
    answers[#answers + 1] = { letter, ARGV[i + 1] }
  end
  return answers
end

local bytes = { 0 }

--- Letters for one partition.
local function collect(to, most, reply)
  local key, now = keys.OUTBOX .. to, meta.state[meta.NOW_MS]
  local over = elsewhere.over(to)
  if over then
    letters.settle_alone(to, over)
    sweep.run(MOST_STEPS)
    return
  end
  mail.tell_anew(to)
  for _, subject in ipairs(call("ZRANGEBYSCORE", key, "-inf", now, "LIMIT", 0, most)) do
    local letter = bytes[1] < MOST_BYTES and letters.write(to, subject)
    if letter then
      bytes[1] = bytes[1] + #letter
      reply[#reply + 1] = tonumber(to, 16)
      reply[#reply + 1] = letter
    end
  end
  mail.note_first(to)
end

local spec, problem = arguments.spec("courier count wait except", true)
if not spec then
  return redis.error_reply(problem)
end
problem = not check.is_short_name(spec.courier) and check.problem("courier", check.SHORT_NAME, spec.courier)
  or spec.count ~= nil and not check.is_integer(spec.count, 1, MOST_LETTERS)
  and check.problem("count", "an integer from 1 to " .. MOST_LETTERS, spec.count)
  or spec.wait ~= nil and not check.is_integer(spec.wait, 1, LONGEST_MS)
  and check.problem("wait", "an integer from 1 to " .. LONGEST_MS, spec.wait)
  or spec.except ~= nil and check_except(spec.except)
local answers
if not problem then
  answers, problem = read_answers()
end
if problem then
  return redis.error_reply(problem)
end
local is_answered = {}
for _, answer in ipairs(answers) do
  letters.answered(answer[1], answer[2])
  is_answered[answer[1].to] = true
end
for to in pairs(is_answered) do
  mail.tell_anew(to)
  mail.note_first(to)
end
local now = meta.state[meta.NOW_MS]
local is_excepted, due = {}, {}
for _, number in ipairs(spec.except or {}) do
  is_excepted[string.format("%02x", number)] = true
end
for _, to in ipairs(call("ZRANGEBYSCORE", keys.OUTBOXES, "-inf", now)) do
  due[#due + 1] = not is_excepted[to] and to or nil
end
local reply = { -1 }
local share = math.ceil((spec.count or MOST_LETTERS) / math.max(#due, 1))
for _, to in ipairs(due) do
  collect(to, share, reply)
end
local known = call("ZRANGE", keys.OUTBOXES, 0, -1, "WITHSCORES")
for i = 1, #known, 2 do
  if not is_excepted[known[i]] then
    reply[1] = math.max(tonumber(known[i + 1]) - now, 0)
    break
  end
end
if spec.wait and #reply == 1 then
  mail.rest(spec.courier, reply[1] >= 0 and math.min(reply[1], spec.wait) or spec.wait)
else
  mail.awake(spec.courier)
end
transition.commit()
return reply
