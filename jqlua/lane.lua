---@lazy
-- Lanes: sets of a queue's jobs that are held or free together. Beside the set of its state (w) a job that waits in a
-- lane stands in the lane's own, so that only heads of lanes need a look.
local keys = require "jqlua.keys"
local job = require "jqlua.job"
local queue = require "jqlua.queue"
local ready = require "jqlua.ready"
local room = require "jqlua.room"
local units = require "jqlua.units"

local M = {}

local call = redis.call

---@return number? priority of the lane's best job
---@return string? id
function M.head(lane)
  local first = call("ZRANGE", keys.LANE .. lane, 0, 0, "WITHSCORES")
  return tonumber(first[2]), first[1]
end

--- A job comes to wait in its lane.
function M.join(owner, of)
  local own = units.of(of)
  local lane, id, priority = own[units.LANE], of[job.ID], of[job.PRIORITY]
  local head_priority, head_id = M.head(lane)
  call("ZADD", keys.LANE .. lane, priority, id)
  if not head_id or priority < head_priority or (priority == head_priority and id < head_id) then
    ready.add(owner, priority, id, lane .. own[units.PATH])
    owner[queue.REOPENED] = true
  end
end

--- A job leaves its lane, other than to start. If it was the last, nobody will look at the lane again: what its keys
--- have room for is for others. In a fair queue, others of its group may be looked at before.
function M.leave(owner, of)
  local own = units.of(of)
  local lane = keys.LANE .. own[units.LANE]
  call("ZREM", lane, of[job.ID])
  if own[units.PATH] ~= "" or call("EXISTS", lane) == 0 then
    room.fetch(own[units.ENTRIES])
    room.pass_on(owner, own[units.ENTRIES])
    ready.unsettle(ready.of_queue(owner[queue.NAME]), owner[queue.NAME], of[job.PRIORITY], own[units.PATH])
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
    room.leave(of, true)
  elseif to ~= "r" and to ~= "q" and to ~= "w" then
    room.leave(of, false)
  end
end

return M
