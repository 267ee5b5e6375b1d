---@lazy
-- Who waits for whom. A blocked job has the set of those it still waits for, each of these the set of those that
-- wait for it. When a job ends, its dependents are due for a look (kind "d" .. how it ended .. id), so that any number
-- of them is unblocked in steps, by whoever sweeps.
--
-- How it ended: d done or skipped, e error, c cancelled, a cancelled with all its dependents (which comes before the
-- others).
local awaited = require "jqlua.job.awaited"
local keys = require "jqlua.base.keys"
local due = require "jqlua.base.due"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

local MOST_NAMED = 10
local CHUNK = 1000

M.ALL_CANCELLED = "a" -- how a job ended whose dependents go with it
M.tree = {} -- [1]: what this call cancels takes its dependents along

--- A job comes to wait for others, which have not ended.
---@param others string[] ids
function M.join(id, others)
  for first = 1, #others, CHUNK do
    local members = {}
    for i = first, math.min(first + CHUNK - 1, #others) do
      members[#members + 1], members[#members + 2] = 0, others[i]
    end
    call("ZADD", keys.WAITS_FOR .. id, unpack(members))
  end
  for _, other_id in ipairs(others) do
    call("ZADD", keys.DEPENDENTS .. other_id, 0, id)
    local other = jobs.read(other_id)
    if other then -- else its record is gone
      awaited.note(other)
    end
  end
end

--- A job does not wait for another any more.
---@return boolean free whether it waits for none
function M.cut(id, other_id)
  call("ZREM", keys.WAITS_FOR .. id, other_id)
  call("ZREM", keys.DEPENDENTS .. other_id, id)
  return call("EXISTS", keys.WAITS_FOR .. id) == 0
end

--- A blocked job becomes something else.
function M.leave(id)
  for _, other_id in ipairs(call("ZRANGE", keys.WAITS_FOR .. id, 0, -1)) do
    call("ZREM", keys.DEPENDENTS .. other_id, id)
  end
  call("DEL", keys.WAITS_FOR .. id)
end

--- A job ended that others may wait for.
---@param to string its state
function M.note_end(id, to)
  if call("EXISTS", keys.DEPENDENTS .. id) == 1 then
    local how = (to == states.KEPT or to == states.SKIPPED) and states.DONE
      or to == states.CANCELLED and M.tree[1] and M.ALL_CANCELLED or to
    due.note(due.DEPENDENTS .. how .. id, due.AT_ONCE)
  end
end

--- Why jobs are not to be cancelled: others, which are not cancelled with them, wait for one of them.
---@return string? problem
function M.refusal(ids)
  local is_named = {}
  for _, id in ipairs(ids) do
    is_named[id] = true
  end
  for i, id in ipairs(ids) do
    local waiting = {}
    for _, dependent in ipairs(call("ZRANGE", keys.DEPENDENTS .. id, 0, MOST_NAMED + #ids)) do
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

--- Whether a job had better not wait for others, as one of them waits for it.
---@param others string[] ids; this is done with the list
---@return boolean? is_circle nil when there are too many to look at
---@return number? looked at so many, when there is none
function M.reaches(others, id, most)
  local seen, looked = {}, 0
  while others[1] do
    local at = table.remove(others)
    if at == id then
      return true
    end
    looked = looked + 1
    if looked > most then
      return nil
    end
    for _, other in ipairs(call("ZRANGE", keys.WAITS_FOR .. at, 0, -1)) do
      if not seen[other] then
        seen[other] = true
        others[#others + 1] = other
      end
    end
  end
  return false, looked
end

return M
