-- Which jobs wait for which. A blocked job has the set of jobs it still waits for, each of these the set of jobs that
-- wait for it. When a job ends, its dependents become due (kind "d" .. how it ended .. id), so that any number of them
-- is unblocked in steps, by sweeps.
--
-- How it ended: d done or skipped, e error, c cancelled, a cancelled with all its dependents (which comes before the
-- others).
local keys = require "jqlua.base.keys"
local due = require "jqlua.base.due"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

local MOST_NAMED = 10
local CHUNK = 1000
local LINKS = 50 -- to follow so many is as dear as to look at another job

M.ALL_CANCELLED = "a" -- the end of a job that is cancelled with its dependents
M.tree = {} -- [1]: jobs that this call cancels are cancelled with their dependents

--- Links a job to others that it waits for, which have not ended.
---@param others string[] ids
function M.join(id, others)
  for first = 1, #others, CHUNK do
    local members = {}
    for i = first, math.min(first + CHUNK - 1, #others) do
      members[#members + 1], members[#members + 2] = "0", others[i]
    end
    call("ZADD", keys.WAITS_FOR .. id, unpack(members))
  end
  for _, other_id in ipairs(others) do
    call("ZADD", keys.DEPENDENTS .. other_id, "0", id)
    local other = jobs.read(other_id)
    if other then -- nil: its record was removed
      jobs.await(other)
    end
  end
end

--- Removes a link.
---@return boolean free whether the job waits for no other
function M.cut(id, other_id)
  call("ZREM", keys.WAITS_FOR .. id, other_id)
  call("ZREM", keys.DEPENDENTS .. other_id, id)
  return call("EXISTS", keys.WAITS_FOR .. id) == 0
end

--- Removes all links of a job that leaves state blocked.
function M.leave(id)
  for _, other_id in ipairs(call("ZRANGE", keys.WAITS_FOR .. id, "0", "-1")) do
    call("ZREM", keys.DEPENDENTS .. other_id, id)
  end
  call("DEL", keys.WAITS_FOR .. id)
end

--- Makes the dependents of an ended job due.
---@param to string its state
function M.note_end(id, to)
  if call("EXISTS", keys.DEPENDENTS .. id) == 1 then
    local how = (to == states.KEPT or to == states.SKIPPED) and states.DONE
      or to == states.CANCELLED and M.tree[1] and M.ALL_CANCELLED or to
    due.note(due.DEPENDENTS .. how .. id, due.AT_ONCE)
  end
end

--- Refuses to cancel jobs on which others depend that are not cancelled with them.
---@return string? problem
function M.refusal(ids)
  local is_named = {}
  for _, id in ipairs(ids) do
    is_named[id] = true
  end
  for i, id in ipairs(ids) do
    local waiting = {}
    for _, dependent in ipairs(call("ZRANGE", keys.DEPENDENTS .. id, "0", MOST_NAMED + #ids)) do
      if not is_named[dependent] then
        waiting[#waiting + 1] = dependent
      end
    end
    if waiting[1] then
      local more = waiting[MOST_NAMED + 1] and " and more" or ""
      return "CONFLICT ids[" .. i - 1 .. "]: jobs depend on it: "
        .. table.concat(waiting, " ", 1, math.min(#waiting, MOST_NAMED)) .. more
    end
  end
end

--- Whether one of these jobs waits for the job, so that it must not wait for them.
---@param others string[] ids; the list is consumed
---@return boolean? is_circle nil if there are too many to search
---@return number? looked how many were searched, if there is none
function M.reaches(others, id, most)
  local seen, looked = {}, 0
  while others[1] do
    local at = table.remove(others)
    if at == id then
      return true
    end
    local behind = call("ZRANGE", keys.WAITS_FOR .. at, 0, -1)
    looked = looked + 1 + #behind / LINKS
    if looked > most then
      return nil
    end
    for _, other in ipairs(behind) do
      if not seen[other] then
        seen[other] = true
        others[#others + 1] = other
      end
    end
  end
  return false, looked
end

return M
