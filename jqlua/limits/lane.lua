---@lazy
-- Lanes: sets of a queue's jobs that are held or free together. Beside the set of its state (w) a job that waits in a
-- lane stands in the lane's own, so that only heads of lanes need a look.
local batch = require "jqlua.base.writes"
local keys = require "jqlua.base.keys"
local keyrecord = require "jqlua.limits.keyrecord"
local meta = require "jqlua.base.meta"
local opened = require "jqlua.limits.opened"
local parking = require "jqlua.limits.parking"
local changes = require "jqlua.limits.rollout"
local due = require "jqlua.base.due"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local queue = require "jqlua.queue.record"
local ready = require "jqlua.limits.lane_index"
local taking = require "jqlua.limits.taking"
local units = require "jqlua.limits.units"

local M = {}

local call = redis.call

---@return number? priority of the lane's best job
---@return string? id
function M.head(lane)
  local known = opened.found[lane]
  if not known then
    local first = call("ZRANGE", ready.jobs_key(lane), 0, 0, "WITHSCORES")
    known = { tonumber(first[2]), first[1] }
    opened.found[lane] = known
  end
  return known[1], known[2]
end

--- A job comes to wait in its lane.
function M.join(owner, of)
  local own = units.of(of)
  local lane, id, priority = own[units.LANE], of[job.ID], of[job.PRIORITY]
  if meta.state[meta.NEXT_DUE] <= meta.state[meta.NOW_MS] then
    due.tell_sleepers() -- what holds the lane may be over, and nobody came
  end
  local head_priority, head_id = M.head(lane)
  batch.add(keys.LANE .. lane, priority, id)
  if not head_id or ready.is_before(priority, id, head_priority, head_id) then
    opened.found[lane] = { priority, id }
    ready.add(owner, priority, id, lane .. own[units.PATH])
    owner[queue.REOPENED] = true
  else
    owner[queue.REOPENED] = owner[queue.REOPENED] or queue.BEHIND
  end
end

--- A job leaves its lane, other than to start. If it was the last, nobody will look at the lane again: what its keys
--- have room for is for others. In a fair queue, others of its group may be looked at before.
function M.leave(owner, of)
  local own = units.of(of)
  local lane, path, id = own[units.LANE], own[units.PATH], of[job.ID]
  opened.found[lane] = nil
  call("ZREM", ready.jobs_key(lane), id)
  local is_fair = path ~= ""
  if is_fair and ready.withdraw(owner, of[job.PRIORITY], id, lane, path) then
    local head_priority, head_id = M.head(lane)
    if head_id then
      ready.add(owner, head_priority, head_id, lane .. path)
    end
  end
  if is_fair or not ready.has_jobs(lane) then
    keyrecord.fetch(own[units.ENTRIES])
    parking.pass_on(owner, own[units.ENTRIES])
  end
end

--- What a job has of lanes and room, when it goes to another state.
---@param to string letter
---@param is_popped? boolean whether it is out of its lane already
function M.moved(owner, of, to, is_popped)
  local from = of[job.STATE]
  if from == states.IN_LANE and not is_popped then
    M.leave(owner, of)
  end
  if to == states.SCHEDULED or to == states.RETRYING then
    if from == states.RUNNING then
      changes.catch_up(of)
    end
    taking.leave(of, true)
  elseif to ~= states.RUNNING and to ~= states.QUEUED and to ~= states.IN_LANE then
    taking.leave(of, false)
  end
end

return M
