-- Detects outages: a time in which no call could come (Redis stopped, a failover, a slot that moved) must not end every
-- lease, since their holders could not renew them. It shows as a gap: calls came for a while, then none did from before
-- a lease ended until well after, although sleepers would have called. Leases of that time are extended by it, once
-- each, when they are found to be over.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local due = require "jqlua.base.due"
local attempts = require "jqlua.life.attempts"
local extras = require "jqlua.job.extras"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local states = require "jqlua.job.states"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

local LATE_MS = 1000 -- a sleeper that should have woken a second ago counts as dead
local AWAKE_MS = 60000 -- calls must have come for so long before
local APART_MS = 120000 -- and never so far apart: no worker sleeps for more than a minute
local MOST = 1000 -- due entries and workers that are read

--- Whether this call's time is to be recorded.
---@return boolean
function M.is_due()
  local state = meta.state
  local passed_ms = state[meta.NOW_MS] - state[meta.RAN_MS]
  return passed_ms >= meta.PULSE_MS or passed_ms < 0
end

--- Whether a member of a set has its score at or after one moment, and before another.
local function has_between(key, from_ms, to_ms)
  return call("ZRANGEBYSCORE", key, from_ms, "(" .. string.format("%.0f", to_ms), "LIMIT", 0, 1)[1] ~= nil
end

--- Whether a registered worker's own last heartbeat was at or after one moment, and before another: one that an excuse
--- set proves nothing, or a dead worker would be excused at every gap between calls.
local function is_seen_between(from_ms, to_ms)
  local alive = call("ZRANGEBYSCORE", keys.ALIVE, from_ms, "(" .. string.format("%.0f", to_ms), "WITHSCORES",
    "LIMIT", 0, MOST)
  for i = 1, #alive, 2 do
    local record = workers.load(alive[i])
    if record and record.e ~= tonumber(alive[i + 1]) then
      return true
    end
    budget.pay(budget.LOOK)
  end
  return false
end

--- Whether a lease or a worker expired at or after one moment and before another. If there is too much to read, assumes
--- so: better to wait once more than to take jobs from live workers.
local function is_over_between(from_ms, to_ms)
  local due_members = call("ZRANGEBYSCORE", keys.DUE, "-inf", to_ms, "LIMIT", 0, MOST)
  for _, member in ipairs(due_members) do
    local kind, name = member:sub(1, 1), member:sub(2)
    local is_over
    if kind == due.LEASES then
      is_over = has_between(queues.key(queues.load(name), states.RUNNING), from_ms, to_ms)
    elseif kind == due.WORKERS then
      local ttl_ms = settings.at(settings.WORKER_TTL) * 1000
      is_over = is_seen_between(from_ms - ttl_ms, to_ms - ttl_ms)
    end
    if is_over then
      return true
    end
    budget.pay(budget.LOOK)
  end
  return #due_members == MOST
end

--- Moves the last heartbeats of workers that were alive then by the length of the gap, but not to after this call.
local function excuse_workers(from_ms, to_ms)
  local ttl_ms = settings.at(settings.WORKER_TTL) * 1000
  local alive = call("ZRANGEBYSCORE", keys.ALIVE, from_ms - ttl_ms, to_ms, "WITHSCORES", "LIMIT", 0, MOST)
  for i = 1, #alive, 2 do
    local id, seen_ms = alive[i], tonumber(alive[i + 1])
    local later_ms = math.min(seen_ms + to_ms - from_ms, to_ms - 1)
    local record = later_ms > seen_ms and workers.edit(id)
    if record then
      record.e = later_ms
      workers.save(id, record)
      call("ZADD", keys.ALIVE, later_ms, id)
    end
  end
end

--- Records that a call came, and the gap before it.
function M.note()
  local now = meta.state[meta.NOW_MS]
  local since_ms, ran_ms, from_ms, to_ms = meta.pulse()
  local until_ms = now - LATE_MS
  if ran_ms - since_ms >= AWAKE_MS and ran_ms < until_ms and meta.state[meta.NEXT_DUE] < until_ms
    and is_over_between(ran_ms, until_ms) then
    excuse_workers(ran_ms, now)
    from_ms, to_ms = ran_ms, now
  elseif now < ran_ms or now - ran_ms > APART_MS then
    since_ms = now
  end
  meta.save_pulse(since_ms, now, from_ms, to_ms)
end

--- Extends an expired lease by the outage in which its holder could not renew it.
---@return boolean # whether that makes it valid again
function M.excuses(job)
  local _, _, from_ms, to_ms = meta.pulse()
  if to_ms == 0 then
    return false
  end
  local end_ms = members.score(job)
  -- One that was renewed since began later.
  if end_ms < from_ms or end_ms - job[jobs.TIMEOUT_MS] >= to_ms then
    return false
  end
  local extra = extras.read(job)
  local later_ms = math.min(end_ms + to_ms - from_ms, job[jobs.STARTED_MS] + attempts.most_ms(job))
  if extra.z == end_ms or later_ms <= end_ms then
    return false
  end
  extra.z = later_ms
  extras.save(job, extra)
  jobs.save(job)
  members.add(queues.load(job[jobs.QUEUE]), states.RUNNING, later_ms, job[jobs.ID])
  return true
end

return M
