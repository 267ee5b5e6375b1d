-- What waits for the clock. One sorted set holds, for each kind of thing and queue, a moment no later than
-- the first of them; meta holds a moment no later than all. Bounds, not exact: an end of a job takes nothing
-- out here, it is the look at the due moment (module life.sweep) that finds nothing and moves the bound on. So the
-- common
-- job writes no timer at all: its lease ends later than one that is already noted.
--
-- Members: kind .. queue, with the kinds
--   r  leases of running jobs              w  scheduled and retrying jobs, jobs that may expire
--   e  kept results, old records           W  registered workers        B  workers to try again
--   E  all queues' leases and old records, after the settings changed
--   m  what an older schema stored
--   d  dependents of a job that ended: how .. id      U  unique keys kept after the end
--   c  the next moment of a schedule: c .. its id     v  jobs to be looked at under other constraints (module
-- limits.placement)
--   O  keys to be looked at (module limits.keyrecord)             p  changes of constraints (module limits.rollout)
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

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
