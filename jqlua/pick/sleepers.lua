-- Workers that wait for jobs, and waking them. Workers with the same queues share a channel and block on its marker
-- (a sorted set with at most one member). A marker wakes one of them; its pick sets the marker again when more
-- is ready. Channels without sleepers are not recorded, so a busy system pays one comparison
-- (meta.state[meta.SLEEPERS]).
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"

local M = {}

local call = redis.call

-- A sleeper that is late by this much is dead.
local SLACK_MS = 1000

--- Whether anyone still sleeps on the channel; forgets it otherwise.
local function is_asleep(channel)
  call("ZREMRANGEBYSCORE", keys.ASLEEP .. channel, "-inf", meta.state[meta.NOW_MS])
  if call("EXISTS", keys.ASLEEP .. channel) == 1 then
    return true
  end
  if call("HDEL", keys.SLEEPERS, channel) == 1 then
    call("DEL", keys.WAKE .. channel)
    meta.save_sleepers(call("HLEN", keys.SLEEPERS))
  end
  return false
end

local function mark(channel)
  if is_asleep(channel) then
    call("ZADD", keys.WAKE .. channel, 0, "1")
  end
end

--- Wakes sleepers for a job that is ready in a queue.
---@param is_behind boolean behind others of its lane: only a worker that refuses those can take it
function M.wake(queue_name, is_behind)
  local known = call("HGETALL", keys.SLEEPERS)
  for i = 1, #known, 2 do
    local names, without = cmsgpack.unpack(known[i + 1])
    for _, wanted in ipairs(names) do
      if (without or not is_behind) and queues.matches(wanted, queue_name) then
        mark(known[i])
        break
      end
    end
  end
end

--- When the first sleeper of a channel wakes by itself.
---@return number?
local function first_until(channel)
  return tonumber(call("ZRANGE", keys.ASLEEP .. channel, 0, 0, "WITHSCORES")[2])
end

--- A sleeper of the channel must be awake when something is due next: if none will be, wakes one to set its timer.
local function keep_time(channel)
  local until_ms = first_until(channel)
  if not until_ms or until_ms <= meta.state[meta.NOW_MS] then
    until_ms = is_asleep(channel) and first_until(channel)
  end
  if until_ms and until_ms - SLACK_MS > meta.state[meta.NEXT_DUE] then
    mark(channel)
  end
end

--- Something may be due earlier than sleepers were told, or the one that should wake then may have died.
function M.keep_time()
  for _, channel in ipairs(call("HKEYS", keys.SLEEPERS)) do
    keep_time(channel)
  end
end

--- After a worker of this channel got jobs.
---@param is_more boolean whether more is ready
function M.go_on(channel, is_more)
  if is_more then
    mark(channel)
  else
    keep_time(channel)
  end
end

--- Sets what the sleepers of a channel, if any, are woken for.
---@param wanted string[] names and patterns of queues
function M.want(channel, wanted)
  if call("HEXISTS", keys.SLEEPERS, channel) == 1 then
    call("HSET", keys.SLEEPERS, channel, cmsgpack.pack(wanted))
  end
end

function M.wake_channel(channel)
  mark(channel)
end

--- A worker that slept is awake.
function M.awake(who, channel)
  if call("ZREM", keys.ASLEEP .. channel, who) == 1 then
    is_asleep(channel)
  end
end

--- A worker takes no more jobs: it does not count as a sleeper.
function M.leave(who)
  for _, channel in ipairs(call("HKEYS", keys.SLEEPERS)) do
    if call("ZREM", keys.ASLEEP .. channel, who) == 1 then
      keep_time(channel)
    end
  end
end

--- A worker found no job and goes to sleep. A set marker is cleared.
---@param wanted string[] names and patterns of queues
---@param without table<string, boolean>|false names of jobs that no worker of this channel takes
function M.sleep(who, channel, ms, wanted, without)
  local next_ms = meta.next_ms()
  if next_ms >= 0 and next_ms < ms then
    ms = next_ms
  end
  call("DEL", keys.WAKE .. channel)
  call("ZADD", keys.ASLEEP .. channel, meta.state[meta.NOW_MS] + ms + SLACK_MS, who)
  if call("HSET", keys.SLEEPERS, channel, cmsgpack.pack(wanted, without or nil)) == 1 then
    meta.save_sleepers(call("HLEN", keys.SLEEPERS))
  end
end

return M
