---@lazy
-- Mail between the partitions of a system (docs/partitions.md). What is kept is that a partition is to be told of a
-- job, and when: a subject. The letter is written when a courier asks (module links.letters), so it says what is so
-- then. That makes letters idempotent, in any order: one that was lost is written again, an old one does no harm.
--
-- Subjects are `f` and the id of a job there that jobs here depend on, or how a job here ended and its id; or `j` and
-- the id under which a job waits that is to be made there (module links.onward).
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

M.FOLLOW = "f"
M.ENQUEUE = "j"
M.LOST = "n" -- how a job ended of which its partition knows nothing, though it did not end: a failover lost it
M.CHANNEL = "mail" -- on which couriers sleep
M.LEASE_MS = 5000 -- a letter that nobody answers is written anew after this; couriers give up before
M.AGAIN_MS = 300000 -- after this it is told again that a job is followed, for as long as others wait for it
M.ANEW = "anew " -- + digits of a partition, among what is known of others: since when it is another server's
local MOST_ANEW = 100

-- Who follows a job stands among its dependents and readers as this and the digits of the partition: before all ids.
M.PARTITION = "!"

--- A courier that is late by this much is dead.
local SLACK_MS = 1000

---@return string digits of the partition that gave an id, two of them
function M.digits_of(id)
  return #id == 14 and "00" or id:sub(15)
end

---@return boolean # whether two jobs are of different partitions
function M.is_elsewhere(id, other_id)
  return id:sub(15) ~= other_id:sub(15)
end

---@return number moment in microseconds
function M.moment()
  return meta.state[meta.NOW_MS] * 1000 + (tonumber(meta.state[meta.MICROS]) or 0) % 1000
end

--- Has a partition told of a job, as soon as a courier comes.
---@param to string digits of the partition
function M.put(to, subject)
  local asleep = keys.ASLEEP .. M.CHANNEL
  call("ZADD", keys.OUTBOX .. to, 0, subject)
  call("ZADD", keys.OUTBOXES, 0, to)
  call("ZREMRANGEBYSCORE", asleep, "-inf", meta.state[meta.NOW_MS])
  if call("EXISTS", asleep) == 1 then
    call("ZADD", keys.WAKE .. M.CHANNEL, 0, "1")
  end
end

--- All that was told to a server before another took over is to be told to that one: a part of it now.
function M.tell_anew(to)
  local since_ms = call("HGET", keys.ELSEWHERE, M.ANEW .. to)
  if not since_ms then
    return
  end
  local before = "(" .. string.format("%.0f", since_ms + M.AGAIN_MS)
  local later = "(" .. string.format("%.0f", meta.state[meta.NOW_MS] + M.LEASE_MS) -- those before are under way, or due
  local subjects = call("ZRANGEBYSCORE", keys.OUTBOX .. to, later, before, "LIMIT", 0, MOST_ANEW)
  for _, subject in ipairs(subjects) do
    call("ZADD", keys.OUTBOX .. to, 0, subject)
  end
  if #subjects < MOST_ANEW then
    call("HDEL", keys.ELSEWHERE, M.ANEW .. to)
  end
end

--- When the first letter for a partition is due, as it is now.
function M.note_first(to)
  local first = call("ZRANGE", keys.OUTBOX .. to, 0, 0, "WITHSCORES")[2]
  if first then
    call("ZADD", keys.OUTBOXES, first, to)
  else
    call("ZREM", keys.OUTBOXES, to)
  end
end

--- A courier found nothing and goes to sleep.
function M.rest(who, ms)
  call("DEL", keys.WAKE .. M.CHANNEL)
  call("ZADD", keys.ASLEEP .. M.CHANNEL, meta.state[meta.NOW_MS] + ms + SLACK_MS, who)
end

--- A courier is up, and does not count on the marker.
function M.awake(who)
  call("ZREM", keys.ASLEEP .. M.CHANNEL, who)
end

--- A job that others follow ended; the partitions they are of are told. Those of one that did not succeed go on
--- following it: it may be retried.
---@param how string module links.links
function M.note_end(id, how)
  for _, member in ipairs(call("ZRANGEBYLEX", keys.DEPENDENTS .. id, "-", "(0")) do
    M.put(member:sub(2), how .. id)
    if how == states.DONE then
      call("ZREM", keys.DEPENDENTS .. id, member)
    end
  end
end

--- A job comes to depend on one of another partition, and has not ended.
function M.enter(id, other_id)
  call("ZADD", keys.READERS .. other_id, string.format("%.0f", M.moment()), id)
  M.put(M.digits_of(other_id), M.FOLLOW .. other_id)
end

--- A job ended, or does not depend on one of another partition any more.
function M.leave(id, other_id)
  if call("ZREM", keys.READERS .. other_id, id) == 1 and call("EXISTS", keys.READERS .. other_id) == 0 then
    M.put(M.digits_of(other_id), M.FOLLOW .. other_id)
  end
end

--- The partitions that have jobs which wait for one.
---@return number[]
function M.partitions_of(id)
  local numbers = {}
  for i, member in ipairs(call("ZRANGEBYLEX", keys.DEPENDENTS .. id, "-", "(0")) do
    numbers[i] = tonumber(member:sub(2), 16)
  end
  return numbers
end

--- The time of a result is over that other partitions still may want: they are asked.
function M.ask_readers(id)
  for _, member in ipairs(call("ZRANGEBYSCORE", keys.READERS .. id, "(0", "+inf")) do
    M.put(member:sub(2), states.DONE .. id)
  end
end

--- What is known of jobs of other partitions.
---@param others string[] ids
---@return table[] list of {id, partition, status?}
function M.known_of(id, others)
  local known = {}
  for _, other_id in ipairs(others) do
    if M.is_elsewhere(id, other_id) then
      known[#known + 1] = {
        id = other_id,
        partition = tonumber(M.digits_of(other_id), 16),
        status = call("HGET", keys.ELSEWHERE, other_id) or nil,
      }
    end
  end
  return known
end

return M
