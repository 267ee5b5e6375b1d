-- What waits for the clock. One sorted set holds, for each kind of thing and queue, a moment no later than the first of
-- them; meta holds a moment no later than all. Bounds, not exact: an end of a job takes nothing out here; the sweep
-- (module schedules.sweep) that finds nothing due moves the bound on. So the common job writes no timer at all: its
-- lease ends later than one that is already recorded.
--
-- A member is one letter, the kind, followed by a queue's name or what is listed beside the kind.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

-- Kinds.
M.LEASES = "r" -- of a queue's running jobs
M.WAITING = "w" -- a queue's scheduled and retrying jobs, and those that may expire
M.ENDED = "e" -- a queue's kept results and old records
M.PLACING = "v" -- a queue's jobs that are to be placed under other constraints (module life.placement)
M.REVIEW = "E" -- all queues' old records, after the settings changed
M.WORKERS = "W" -- registered workers whose heartbeats may be overdue
M.RESTING = "B" -- a busy or unreachable worker, until it is tried again: its id
M.DEPENDENTS = "d" -- those of a job that ended: how, its id, and the last one handled
M.UNIQUE = "U" -- a unique key that is kept after the end, until it is free
M.SCHEDULE = "c" -- the next moment of a schedule: its id
M.KEYS = "O" -- keys of constraints that open by time (module limits.keyrecord)
M.CONSTRAINTS = "p" -- keys of a changed or removed constraint: its number (module limits.rollout)

-- A moment that is always due, even after the clock went back.
M.AT_ONCE = 0

--- Makes transition.commit check that a sleeper wakes in time (sleepers.keep_time): sleepers may have been told a later
--- moment, and the one that should be awake may be dead.
function M.move_timer()
  meta.set(meta.TIMER_MOVED, true)
end

local function tell(at_ms)
  if at_ms < meta.state[meta.NEXT_DUE] then
    meta.set_due(at_ms)
  end
  M.move_timer()
end

--- Records a moment for a kind, unless an earlier one is recorded.
---@param member string kind .. queue
---@param at_ms number
function M.note(member, at_ms)
  redis.call("ZADD", keys.DUE, "LT", at_ms, member)
  tell(at_ms)
end

--- Records the moment of one thing, whatever was recorded.
---@param member string kind .. its name
---@param at_ms number
function M.put(member, at_ms)
  redis.call("ZADD", keys.DUE, at_ms, member)
  tell(at_ms)
end

---@return number? at_ms that is recorded
function M.at(member)
  return tonumber(redis.call("ZSCORE", keys.DUE, member) or nil)
end

--- Sets the moment after a sweep of the kind, or forgets it.
---@param at_ms number meta.NONE when there is nothing left
function M.set(member, at_ms)
  if at_ms == meta.NONE then
    redis.call("ZREM", keys.DUE, member)
  else
    redis.call("ZADD", keys.DUE, at_ms, member)
  end
end

return M
