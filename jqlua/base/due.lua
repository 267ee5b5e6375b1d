-- What waits for the clock. One sorted set holds, for each kind of thing and queue, a moment no later than
-- the first of them; meta holds a moment no later than all. Bounds, not exact: an end of a job takes nothing
-- out here, it is the look at the due moment (module life.sweep) that finds nothing and moves the bound on. So the
-- common
-- job writes no timer at all: its lease ends later than one that is already noted.
--
-- A member is one letter, the kind, and what of it there is many of: a queue's name, or what stands beside the kind.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

-- Kinds.
M.LEASES = "r" -- of a queue's running jobs
M.WAITING = "w" -- a queue's scheduled and retrying jobs, and those that may expire
M.ENDED = "e" -- a queue's kept results and old records
M.PLACING = "v" -- a queue's jobs that are to be looked at under other constraints (module limits.placement)
M.REVIEW = "E" -- all queues' leases and old records, after the settings changed
M.WORKERS = "W" -- registered workers that give no sign of life
M.RESTING = "B" -- workers to try again
M.DEPENDENTS = "d" -- those of a job that ended: how, its id, and who was looked at last
M.UNIQUE = "U" -- unique keys that are kept after the end
M.SCHEDULE = "c" -- the next moment of a schedule: its id
M.KEYS = "O" -- keys of constraints that open by time (module limits.keyrecord)
M.EXPIRY = "x" -- the end of a constraint that has one: its id
M.CONSTRAINTS = "p" -- changes of constraints (module limits.rollout)

-- A moment that has come, also after the clock went back.
M.AT_ONCE = 0

---@cold
--- It is to be seen to that somebody is up in time (sleepers.keep_time): those who sleep may have been told a later
--- moment, and who should have been up may be dead.
function M.tell_sleepers()
  meta.set(meta.TIMER_MOVED, true)
end

---@cold
--- Notes a moment for a kind; an earlier one stays.
---@param member string kind .. queue
---@param at_ms number
function M.note(member, at_ms)
  redis.call("ZADD", keys.DUE, "LT", at_ms, member)
  if at_ms < meta.state[meta.NEXT_DUE] then
    meta.set_due(at_ms)
  end
  M.tell_sleepers()
end

--- After a look: the moment as it now is.
---@param at_ms number meta.NONE when there is nothing left
function M.set(member, at_ms)
  if at_ms == meta.NONE then
    redis.call("ZREM", keys.DUE, member)
  else
    redis.call("ZADD", keys.DUE, at_ms, member)
  end
end

return M
