---@lazy
-- Jobs that come of a step here and belong to another partition: what follows a job, and what a schedule makes
-- (docs/partitions.md). They wait here until that partition has made them, which letters of kind `enqueue` ask of it.
--
-- A job is asked for at one partition at a time, under an id that this one gives, which is no job's. What a partition
-- answered it remembers by that id, so it makes no second one, however often and late the letter comes: it may forget
-- when this partition says that no earlier id is left. One that the record gives nothing to do with the job says that
-- it will not make it, and is not asked under that id again. Only then another is asked, under a later id.
local arrival = require "jqlua.life.arrival"
local batch = require "jqlua.base.writes"
local belonging = require "jqlua.links.belonging"
local elsewhere = require "jqlua.links.elsewhere"
local job = require "jqlua.job.record"
local jobspec = require "jqlua.job.spec"
local keys = require "jqlua.base.keys"
local mail = require "jqlua.links.mail"
local meta = require "jqlua.base.meta"
local record = require "jqlua.schedules.record"
local serial = require "jqlua.base.serial"
local unique = require "jqlua.job.unique"

local M = {}

local call = redis.call

M.SENT = "" -- instead of its id: it is made elsewhere
M.FREE = "free" -- it is not to be made there, and its key is nobody's there
local FULL = "full" -- its schedule makes none while the queue has no room
local OLD = "old" -- it was answered, and its sender knows what
local LEAST = "least " -- + digits of a partition, among what is known of others: no earlier id of it comes any more
local MOST_FORGOTTEN = 100
M.AGAIN_MS = 1000 -- so soon a partition is asked again that knows an earlier record, or a later one

-- Here ---------------------------------------------------------------------------------------------------

local function is_held(new)
  local key = job.options(new).unique
  return key ~= nil and unique.holder(key) ~= nil
end

--- The partition that is to be asked for a job; nil where it is made here.
---@param refused? string digits of one that does not make it, by the record that is here
local function next_of(new, argument, refused)
  local ways = belonging.ways(new, argument)
  local _, own = elsewhere.own()
  if not ways then
    return nil
  elseif ways.former and ways.former ~= refused and ways.former ~= own then
    return ways.former
  elseif ways.former == own and is_held(new) then
    return nil
  end
  return (ways.owner ~= own or ways.waits) and ways.owner or nil
end

--- Whether a job may have to be brought to another partition.
---@return boolean
function M.goes(new, argument)
  local ways = belonging.ways(new, argument)
  local _, own = elsewhere.own()
  return ways ~= nil and (ways.owner ~= own or ways.waits or (ways.former or own) ~= own)
end

local function put(to, blob, argument, since_ms, moment)
  local id = serial.next()
  call("ZADD", keys.ONWARD .. to, 0, id)
  call("HSET", keys.ONWARD_JOBS, id, cmsgpack.pack(to, blob, argument, since_ms, moment))
  mail.put(to, mail.ENQUEUE .. id)
end

--- Makes a job here. One of a schedule knows it, and is not made where there is no room.
---@param schedule? string its id
---@return string? id nil where its queue has no room
---@return number? created 0 or 1
local function make(new, argument, schedule, schedule_ms)
  if schedule then
    if not arrival.has_room(new) then
      return nil
    end
    local options = job.options(new)
    options.schedule, options.schedule_ms = schedule, schedule_ms
    new[job.OPTIONS] = cmsgpack.pack(options)
  end
  return arrival.create(new, argument)
end

--- Makes a job, or has it brought to where it is to be made.
---@param blob string its spec
---@param moment? table of a schedule {its id, at_ms, whether it is beside its moments}
---@return string? id SENT where it is made elsewhere; nil where there is no room for one of a schedule
---@return number? created 0 or 1
function M.create(new, blob, argument, moment)
  local to = next_of(new, argument)
  if to then
    put(to, blob, argument, meta.state[meta.NOW_MS], moment or false)
    return M.SENT, 0
  end
  return make(new, argument, unpack(moment or {}, 1, 2))
end

local function drop(to, id)
  call("ZREM", keys.ONWARD .. to, id)
  call("HDEL", keys.ONWARD_JOBS, id)
  call("ZREM", keys.OUTBOX .. to, mail.ENQUEUE .. id)
end

--- What was said of a job so long ago.
local function aged(new, ms)
  local later = { unpack(new) }
  later[jobspec.DELAY_MS] = new[jobspec.DELAY_MS] and math.max(new[jobspec.DELAY_MS] - ms, 0)
  later[jobspec.EXPIRES_IN_MS] = new[jobspec.EXPIRES_IN_MS] and math.max(new[jobspec.EXPIRES_IN_MS] - ms, 1)
  return later
end

local function age_of(since_ms)
  return math.max(meta.state[meta.NOW_MS] - since_ms, 0)
end

--- Looks anew where a job is to be asked for, at none or at one that will not make it. Has it asked there again later
--- if that is still the one.
---@param refused? boolean by the record that is here
local function look_anew(to, id, refused)
  local _, blob, argument, since_ms, moment = cmsgpack.unpack(call("HGET", keys.ONWARD_JOBS, id))
  local new = jobspec.parse(blob, 0)
  -- Without a record, as after a failover that lost it, it waits for one.
  local now_to = belonging.generation() == 0 and to or next_of(new, argument, refused and to or nil)
  if now_to == to then
    call("ZADD", keys.OUTBOX .. to, string.format("%.0f", meta.state[meta.NOW_MS] + M.AGAIN_MS), mail.ENQUEUE .. id)
    return
  end
  drop(to, id)
  if now_to then
    put(now_to, blob, argument, since_ms, moment)
  else
    local job_id, created = make(aged(new, age_of(since_ms)), argument, unpack(moment or {}, 1, 2))
    batch.flush()
    if moment then
      record.arrived(moment, job_id, created)
    end
  end
end

--- A partition is no more, or it is this one, which waits until the bucket has moved.
function M.look_anew(to, id)
  look_anew(to, id, false)
end

---@return table? letter nil when it is not asked for there any more
function M.letter(to, id)
  local raw = call("HGET", keys.ONWARD_JOBS, id)
  if not raw then
    return nil
  end
  local _, blob, argument, since_ms, moment = cmsgpack.unpack(raw)
  return {
    kind = "enqueue", id = id, job = blob, argument = argument, age_ms = age_of(since_ms),
    schedule = moment and moment[1] or nil, schedule_ms = moment and moment[2] or nil,
    generation = belonging.generation(), least = call("ZRANGE", keys.ONWARD .. to, 0, 0)[1],
  }
end

--- What a partition said that was asked for a job.
---@param letter table what it was asked
function M.answered(letter, answer)
  if answer == M.FREE then
    look_anew(letter.to, letter.id, letter.generation == belonging.generation())
    return
  end
  local raw = call("HGET", keys.ONWARD_JOBS, letter.id)
  local moment = raw and select(5, cmsgpack.unpack(raw))
  drop(letter.to, letter.id)
  if moment then
    local job_id, created = answer:match("^made (%x+) ([01])$")
    record.arrived(moment, job_id, tonumber(created))
  end
end

-- There --------------------------------------------------------------------------------------------------

--- Until a later id is the least that its sender has, answers are remembered.
local function forget(from, least)
  if least > (call("HGET", keys.ELSEWHERE, LEAST .. from) or "") then
    call("HSET", keys.ELSEWHERE, LEAST .. from, least)
  end
  local key = keys.BROUGHT .. from
  for _, member in ipairs(call("ZRANGEBYLEX", key, "-", "(" .. least, "LIMIT", 0, MOST_FORGOTTEN)) do
    call("ZREM", key, member)
  end
end

--- Another partition asks for a job.
---@param path string of the letter, for errors
---@return string answer
function M.arrive(letter, path)
  local key, id = keys.BROUGHT .. letter.from, letter.id
  local known = call("ZRANGEBYLEX", key, "[" .. id .. " ", "(" .. id .. "!", "LIMIT", 0, 1)[1]
  if known then
    return known:sub(#id + 2)
  elseif id < (call("HGET", keys.ELSEWHERE, LEAST .. letter.from) or "") then
    return OLD
  end
  local generation = belonging.generation()
  if letter.generation ~= generation then
    return string.format("ROUTE %s.generation: this is generation %d of the system, the letter is of %d", path,
      generation, letter.generation)
  end
  local new, problem = jobspec.parse(letter.job, 0, path .. ".jobs")
  if not new then
    return problem
  end
  forget(letter.from, letter.least)
  local ways = belonging.ways(new, letter.argument)
  local _, own = elsewhere.own()
  local is_own = ways ~= nil and ways.owner == own
  if is_own and ways.waits then
    return "ROUTE " .. path .. ".generation: its bucket is about to move"
  elseif not is_own and not is_held(new) then
    return M.FREE
  end
  local job_id, created = make(aged(new, letter.age_ms), letter.argument, letter.schedule, letter.schedule_ms)
  local answer = job_id and string.format("made %s %d", job_id, created) or FULL
  batch.flush()
  call("ZADD", key, 0, id .. " " .. answer)
  return answer
end

return M
