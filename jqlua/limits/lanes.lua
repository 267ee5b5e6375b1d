-- Lanes: sets of a queue's jobs that are held or free together. A job that waits in a lane is in the lane's set as well
-- as in that of its state (w), so that only heads of lanes need reading.
local batch = require "jqlua.base.batch"
local keys = require "jqlua.base.keys"
local keyrecord = require "jqlua.limits.keyrecord"
local meta = require "jqlua.base.meta"
local parking = require "jqlua.limits.parking"
local due = require "jqlua.base.due"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local lane_index = require "jqlua.limits.lane_index"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

M.heads = {} -- by lane its best job, {priority, id}, both nil for none

---@return number? priority of the lane's best job
---@return string? id
function M.head(lane)
  local known = M.heads[lane]
  if not known then
    local first = call("ZRANGE", lane_index.jobs_key(lane), "0", "0", "WITHSCORES")
    known = { tonumber(first[2]), first[1] }
    M.heads[lane] = known
  end
  return known[1], known[2]
end

--- Adds a job to its lane.
function M.join(queue, job)
  local units = job_units.of(job)
  local lane, id, priority = units[job_units.LANE], job[jobs.ID], job[jobs.PRIORITY]
  if meta.state[meta.NEXT_DUE] <= meta.state[meta.NOW_MS] then
    due.move_timer() -- the lane may have been freed without a call
  end
  local head_priority, head_id = M.head(lane)
  batch.add(keys.LANE .. lane, priority, id)
  if not head_id or rank.is_before(priority, id, head_priority, head_id) then
    M.heads[lane] = { priority, id }
    lane_index.add(queue, priority, id, lane, units[job_units.GROUP])
    queue[queues.REOPENED] = true
  else
    queue[queues.REOPENED] = queue[queues.REOPENED] or queues.BEHIND
  end
end

--- Removes a job from its lane, other than to start it. If it was the last, the lane is not read again, and its keys'
--- room is for other lanes. In a fair queue, others of its group may be checked before.
function M.leave(queue, job)
  local units = job_units.of(job)
  local lane, group, id = units[job_units.LANE], units[job_units.GROUP], job[jobs.ID]
  M.heads[lane] = nil
  call("ZREM", lane_index.jobs_key(lane), id)
  local is_fair = group ~= ""
  if is_fair and lane_index.withdraw(queue, id, lane, group) then
    local head_priority, head_id = M.head(lane)
    if head_id then
      lane_index.add(queue, head_priority, head_id, lane, group)
    end
  end
  if is_fair or not lane_index.has_jobs(lane) then
    parking.pass_on(queue, keyrecord.of(units[job_units.ENTRIES]))
  end
end

--- What a job has of lanes and room, when it goes to another state. One that runs and is ready again has given back
--- its room before it was placed (parking.leave).
---@param to string letter
---@param is_popped? boolean whether it is out of its lane already
function M.moved(queue, job, to, is_popped)
  if job[jobs.STATE] == states.IN_LANE and not is_popped then
    M.leave(queue, job)
  end
  if to ~= states.RUNNING and to ~= states.QUEUED and to ~= states.IN_LANE then
    parking.leave(job)
  end
end

return M
