-- Workers that wait for jobs, and waking them. Workers with the same queues share a channel and block on its marker
-- (a sorted set with at most one member). A marker wakes one of them; its pick sets the marker again when more
-- is ready. Channels without sleepers are not recorded, so a busy system pays one comparison
-- (meta.state[meta.SLEEPERS]).
--
-- Who sleeps is noted by name, for timers alone. Several connections may sleep under one name, so a name that is up
-- says nothing of the others: a channel is forgotten when a marker is left lying, since then nobody blocks on it.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"

local M = {}

local call = redis.call

-- A sleeper that is late by this much is dead.
local SLACK_MS = 1000

local function forget(channel)
  call("HDEL", keys.SLEEPERS, channel)
  call("DEL", keys.ASLEEP .. channel)
  meta.save_sleepers(call("HLEN", keys.SLEEPERS))
end

--- Wakes one of the channel. The marker's score is when it was set: who blocks takes it at once.
---@param until_ms number when all who sleep on it are up by themselves
local function mark(channel, until_ms)
  local key, now_ms = keys.WAKE .. channel, meta.state[meta.NOW_MS]
  if until_ms <= now_ms then
    call("DEL", key)
    forget(channel)
  elseif call("ZADD", key, "NX", now_ms, "1") == 0 and now_ms - call("ZSCORE", key, "1") > SLACK_MS then
    forget(channel) -- the marker stays, for who comes later than agreed
  end
end

--- When all who sleep on the channel are up by themselves; nil where nobody sleeps.
---@return number?
local function last_until(channel)
  local record = call("HGET", keys.SLEEPERS, channel)
  if record then
    local _, _, until_ms = cmsgpack.unpack(record)
    return until_ms
  end
end

--- Wakes sleepers for a job that is ready in a queue.
---@param is_behind boolean behind others of its lane: only a worker that refuses those can take it
function M.wake(queue_name, is_behind)
  local known = call("HGETALL", keys.SLEEPERS)
  for i = 1, #known, 2 do
    local names, without, until_ms = cmsgpack.unpack(known[i + 1])
    for _, wanted in ipairs(names) do
      if (without or not is_behind) and queues.matches(wanted, queue_name) then
        mark(known[i], until_ms)
        break
      end
    end
  end
end

--- A sleeper of the channel must be awake when something is due next: if none will be, wakes one to set its timer.
local function keep_time(channel, until_ms)
  local asleep, now_ms = keys.ASLEEP .. channel, meta.state[meta.NOW_MS]
  local first_ms = rank.first_score(asleep)
  if first_ms and first_ms <= now_ms then
    call("ZREMRANGEBYSCORE", asleep, "-inf", now_ms)
    first_ms = rank.first_score(asleep)
  end
  if (first_ms or until_ms) - SLACK_MS > meta.state[meta.NEXT_DUE] then
    mark(channel, until_ms)
  end
end

--- Something may be due earlier than sleepers were told, or the one that should wake then may have died.
function M.keep_time()
  for _, channel in ipairs(call("HKEYS", keys.SLEEPERS)) do
    keep_time(channel, last_until(channel))
  end
end

--- After a worker of this channel got jobs.
---@param is_more boolean whether more is ready
function M.go_on(channel, is_more)
  local until_ms = last_until(channel)
  if until_ms and is_more then
    mark(channel, until_ms)
  elseif until_ms then
    keep_time(channel, until_ms)
  end
end

--- Sets what the sleepers of a channel, if any, are woken for.
---@param wanted string[] names and patterns of queues
---@param without table|false as of sleep
function M.want(channel, wanted, without)
  local until_ms = last_until(channel)
  if until_ms then
    call("HSET", keys.SLEEPERS, channel, cmsgpack.pack(wanted, without, until_ms))
  end
end

function M.wake_channel(channel)
  if meta.state[meta.SLEEPERS] > 0 then
    M.go_on(channel, true)
  end
end

--- A worker that slept is awake.
function M.awake(who, channel)
  call("ZREM", keys.ASLEEP .. channel, who)
end

--- A worker takes no more jobs: it does not count as a sleeper.
function M.leave(who)
  for _, channel in ipairs(call("HKEYS", keys.SLEEPERS)) do
    if call("ZREM", keys.ASLEEP .. channel, who) == 1 then
      keep_time(channel, last_until(channel))
    end
  end
end

--- A worker found no job and goes to sleep. A set marker is cleared.
---@param wanted string[] names and patterns of queues
---@param without table<string, boolean>|false names of jobs that no worker of this channel takes
---@return number ms for how long it blocks, at least 1
function M.sleep(who, channel, ms, wanted, without)
  local next_ms = meta.next_ms()
  if next_ms >= 0 and next_ms < ms then
    ms = next_ms
  end
  local until_ms = meta.state[meta.NOW_MS] + ms + SLACK_MS
  call("DEL", keys.WAKE .. channel)
  call("ZADD", keys.ASLEEP .. channel, until_ms, who)
  local last_ms = math.max(until_ms, last_until(channel) or 0)
  if call("HSET", keys.SLEEPERS, channel, cmsgpack.pack(wanted, without, last_ms)) == 1 then
    meta.save_sleepers(call("HLEN", keys.SLEEPERS))
  end
  return math.max(1, math.floor(ms))
end

return M
