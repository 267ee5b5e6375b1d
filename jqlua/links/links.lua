---@lazy
-- Who waits for whom. A blocked job has the set of those it still waits for, each of these the set of those that
-- wait for it. When a job ends, its dependents are due for a look (kind "d" .. how it ended .. id), so that any number
-- of them is unblocked in steps, by whoever sweeps.
--
-- How it ended: d done, e error, c cancelled, a cancelled with all its dependents (which comes before the others).
local keys = require "jqlua.base.keys"
local due = require "jqlua.base.due"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

local MOST_NAMED = 10

M.ALL_CANCELLED = "a" -- how a job ended whose dependents go with it
M.tree = {} -- [1]: what this call cancels takes its dependents along

--- A job comes to wait for another, which has not ended.
function M.join(id, other)
  call("ZADD", keys.WAITS_FOR .. id, 0, other[job.ID])
  call("ZADD", keys.DEPENDENTS .. other[job.ID], 0, id)
  job.note_awaited(other)
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
    local how = to == states.KEPT and states.DONE or to == states.CANCELLED and M.tree[1] and M.ALL_CANCELLED or to
    due.note(due.DEPENDENTS .. how .. id, due.AT_ONCE)
  end
end

--- Why jobs are not to be cancelled: others wait for one of them.
---@return string? problem
function M.refusal(ids)
  for i, id in ipairs(ids) do
    local waiting = call("ZRANGE", keys.DEPENDENTS .. id, 0, MOST_NAMED)
    if waiting[1] then
      local more = waiting[MOST_NAMED + 1] and " and more" or ""
      return "CONFLICT ids[" .. i - 1 .. "]: jobs depend on it: "
        .. table.concat(waiting, " ", 1, math.min(#waiting, MOST_NAMED)) .. more
    end
  end
end

--- Whether a job had better not wait for another, as that waits for it.
---@return boolean? is_circle nil when there are too many to look at
function M.reaches(from, id, most)
  local seen, stack = { [from] = true }, { from }
  local looked = 0
  while stack[1] do
    local at = table.remove(stack)
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
        stack[#stack + 1] = other
      end
    end
  end
  return false
end

return M
