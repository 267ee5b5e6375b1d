---@lazy
-- Lanes: sets of a queue's jobs that are held or free together. Beside the set of its state (w) a job that waits in a
-- lane stands in the lane's own, so that only heads of lanes need a look.
local batch = require "jqlua.base.batch"
local keys = require "jqlua.base.keys"
local keyrecord = require "jqlua.limits.keyrecord"
local meta = require "jqlua.base.meta"
local loaded = require "jqlua.limits.loaded"
local parking = require "jqlua.limits.parking"
local rollout = require "jqlua.limits.rollout"
local due = require "jqlua.base.due"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local lane_index = require "jqlua.limits.lane_index"
local taking = require "jqlua.limits.taking"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

---@return number? priority of the lane's best job
---@return string? id
function M.head(lane)
  local known = loaded.found[lane]
  if not known then
    local first = call("ZRANGE", lane_index.jobs_key(lane), 0, 0, "WITHSCORES")
    known = { tonumber(first[2]), first[1] }
    loaded.found[lane] = known
  end
  return known[1], known[2]
end

--- A job comes to wait in its lane.
function M.join(owner, of)
  local own = job_units.of(of)
  local lane, id, priority = own[job_units.LANE], of[jobs.ID], of[jobs.PRIORITY]
  if meta.state[meta.NEXT_DUE] <= meta.state[meta.NOW_MS] then
    due.tell_sleepers() -- what holds the lane may be over, and nobody came
  end
  local head_priority, head_id = M.head(lane)
  batch.add(keys.LANE .. lane, priority, id)
  if not head_id or lane_index.is_before(priority, id, head_priority, head_id) then
    loaded.found[lane] = { priority, id }
    lane_index.add(owner, priority, id, lane .. own[job_units.PATH])
    owner[queues.REOPENED] = true
  else
    owner[queues.REOPENED] = owner[queues.REOPENED] or queues.BEHIND
  end
end

--- A job leaves its lane, other than to start. If it was the last, nobody will look at the lane again: what its keys
--- have room for is for others. In a fair queue, others of its group may be looked at before.
function M.leave(owner, of)
  local own = job_units.of(of)
  local lane, path, id = own[job_units.LANE], own[job_units.PATH], of[jobs.ID]
  loaded.found[lane] = nil
  call("ZREM", lane_index.jobs_key(lane), id)
  local is_fair = path ~= ""
  if is_fair and lane_index.withdraw(owner, of[jobs.PRIORITY], id, lane, path) then
    local head_priority, head_id = M.head(lane)
    if head_id then
      lane_index.add(owner, head_priority, head_id, lane .. path)
    end
  end
  if is_fair or not lane_index.has_jobs(lane) then
    keyrecord.fetch(own[job_units.ENTRIES])
    parking.pass_on(owner, own[job_units.ENTRIES])
  end
end

--- What a job has of lanes and room, when it goes to another state.
---@param to string letter
---@param is_popped? boolean whether it is out of its lane already
function M.moved(owner, of, to, is_popped)
  local from = of[jobs.STATE]
  if from == states.IN_LANE and not is_popped then
    M.leave(owner, of)
  end
  if to == states.SCHEDULED or to == states.RETRYING then
    if from == states.RUNNING then
      rollout.catch_up(of)
    end
    taking.leave(of, true)
  elseif to ~= states.RUNNING and to ~= states.QUEUED and to ~= states.IN_LANE then
    taking.leave(of, false)
  end
end

return M
