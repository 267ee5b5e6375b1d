---@lazy
-- Lanes: sets of a queue's jobs that are held or free together. Beside the set of its state (w) a job that waits in a
-- lane stands in the lane's own, so that only heads of lanes need a look.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local changes = require "jqlua.limits.rollout"
local due = require "jqlua.base.due"
local job = require "jqlua.job.record"
local queue = require "jqlua.queue.record"
local ready = require "jqlua.limits.lane_index"
local room = require "jqlua.limits.room"
local units = require "jqlua.limits.units"

local M = {}

local call = redis.call

---@return number? priority of the lane's best job
---@return string? id
function M.head(lane)
  local first = call("ZRANGE", keys.LANE .. lane, 0, 0, "WITHSCORES")
  return tonumber(first[2]), first[1]
end

-- A job that is known to wait in a lane, {priority, id} by lane: when a worse one joins, nothing changes for the lane.
M.known = {}

--- A job comes to wait in its lane.
function M.join(owner, of)
  local own = units.of(of)
  local lane, id, priority = own[units.LANE], of[job.ID], of[job.PRIORITY]
  if meta.state[meta.NEXT_DUE] <= meta.state[meta.NOW_MS] then
    due.tell_sleepers() -- what holds the lane may be over, and nobody came
  end
  local known = M.known[lane]
  if known and ready.is_before(known[1], known[2], priority, id) then
    call("ZADD", keys.LANE .. lane, priority, id)
    return
  end
  local head_priority, head_id = M.head(lane)
  call("ZADD", keys.LANE .. lane, priority, id)
  if not head_id or ready.is_before(priority, id, head_priority, head_id) then
    ready.add(owner, priority, id, lane .. own[units.PATH])
    owner[queue.REOPENED] = true
  end
  M.known[lane] = { priority, id }
end

--- A job leaves its lane, other than to start. If it was the last, nobody will look at the lane again: what its keys
--- have room for is for others. In a fair queue, others of its group may be looked at before.
function M.leave(owner, of)
  local own = units.of(of)
  local lane = keys.LANE .. own[units.LANE]
  M.known[own[units.LANE]] = nil
  call("ZREM", lane, of[job.ID])
  local is_fair = own[units.PATH] ~= ""
  if is_fair and ready.withdraw(owner, of[job.PRIORITY], of[job.ID], own[units.LANE], own[units.PATH]) then
    local priority, id = M.head(own[units.LANE])
    if id then
      ready.add(owner, priority, id, own[units.LANE] .. own[units.PATH])
    end
  end
  if is_fair or call("EXISTS", lane) == 0 then
    room.fetch(own[units.ENTRIES])
    room.pass_on(owner, own[units.ENTRIES])
  end
end

--- What a job has of lanes and room, when it goes to another state.
---@param to string letter
---@param is_popped? boolean whether it is out of its lane already
function M.moved(owner, of, to, is_popped)
  if of[job.STATE] == "w" and not is_popped then
    M.leave(owner, of)
  end
  if to == "s" or to == "t" then
    if of[job.STATE] == "r" then
      changes.catch_up(of)
    end
    room.leave(of, true)
  elseif to ~= "r" and to ~= "q" and to ~= "w" then
    room.leave(of, false)
  end
end

return M
