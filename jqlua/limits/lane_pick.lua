-- The best job of a queue that has lanes, or whose waiting jobs must be placed again.
local meta = require "jqlua.base.meta"
local attempts = require "jqlua.life.attempts"
local budget = require "jqlua.job.budget"
local batch = require "jqlua.base.batch"
local rollout = require "jqlua.limits.rollout"
local failure = require "jqlua.life.failure"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local lanes = require "jqlua.limits.lanes"
local placement = require "jqlua.limits.placement"
local queues = require "jqlua.queue.queues"
local lane_index = require "jqlua.limits.lane_index"
local keys = require "jqlua.base.keys"
local loaded = require "jqlua.limits.loaded"
local keyrecord = require "jqlua.limits.keyrecord"
local parking = require "jqlua.limits.parking"
local room = require "jqlua.limits.room"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

local STEPS = 100
-- Plain jobs that are placed again at a time.
local PAGE = 8
-- Marks in loaded.lookups that a head was read.
local LOOKED = ""

local function place_again(job, queue)
  local is_moved = placement.review(job, queue)
  batch.flush()
  return is_moved
end

--- Whether another lane may come before a lane whose entry is of a job that left.
---@param place table of the lane, as returned by lane_index.first
---@param entries table[] of units of the head, fetched
local function is_overtaken(place, priority, id, entries)
  if place.path ~= "" or priority ~= place.priority or parking.holds_any(entries) then
    return true
  end
  local rival_priority, rival_id, rival_lane = lane_index.rival(place)
  return rival_lane and (rival_lane == place.lane or lane_index.is_before(rival_priority, rival_id, priority, id))
end

--- Moves a lane's entry to the position of its head, and sends parked lanes that it may have held back.
local function move_entry(queue, index, place, job, entries)
  lane_index.remove(index, queue[queues.NAME], place)
  lane_index.add(queue, job[jobs.PRIORITY], job[jobs.ID], place.lane .. place.path)
  parking.pass_on(queue, entries)
end

--- Reads the head of a lane: the first one in a call, which is likely to start, with its argument.
local function read_head(place, id)
  if loaded.lookups[LOOKED] then
    return jobs.read(id)
  end
  loaded.lookups[LOOKED] = true
  local raws = call("MGET", keys.JOB .. id, keys.ARGUMENT .. id)
  place.argument = raws[2]
  return jobs.from_record(id, raws[1])
end

--- The best lane of a queue whose head may start now. Parks those that may not on the way.
---@return table? place as of lane_index.first, with job and units
---@return boolean? is_more if the search was cut short
local function best_lane(queue, is_settled)
  local name = queue[queues.NAME]
  local index = lane_index.of_queue(name)
  while true do
    local place, is_more = lane_index.first(index, name)
    if not place then
      return nil, is_more
    elseif not budget.pay(budget.LOOK) then
      return nil, true
    end
    local priority, id = lanes.head(place.lane)
    local job = id and read_head(place, id)
    local units = job and job_units.of(job)
    local entries = units and units[job_units.ENTRIES]
    if units then
      keyrecord.fetch(entries)
    end
    if not units then
      lane_index.remove(index, name, place)
    elseif (queues.bound(id) ~= place.id or priority ~= place.priority)
      and is_overtaken(place, priority, id, entries) then
      move_entry(queue, index, place, job, entries)
    elseif job[jobs.OPTIONS] ~= "" and attempts.has_expired(job) then
      failure.expire(job)
      batch.flush()
      budget.pay(budget.of_job(job))
    elseif is_settled or not place_again(job, queue) then
      local lacking = room.lacking(entries)
      if not lacking then
        place.id, place.job, place.units = id, job, units
        return place
      end
      lane_index.remove(index, name, place)
      place.id = id
      parking.park(queue, lacking, place)
      budget.pay(budget.STEP)
      parking.pass_on(queue, entries, lacking)
    end
  end
end

--- The first plain job of a queue.
---@return number? priority
---@return string? id
local function first_plain(queue)
  local first = call("ZRANGE", queues.key(queue, states.QUEUED), 0, 0, "WITHSCORES")
  return tonumber(first[2]), first[1]
end

local function is_first(place, priority, id)
  return place and (not id or lane_index.is_before(place.priority, place.id, priority, id))
end

--- The better of the best lane and the first plain job.
local function head_of(queue, place, priority, id)
  if is_first(place, priority, id) then
    return {
      queue = queue, priority = place.priority, id = place.id, place = place, plain_priority = priority, plain_id = id,
    }
  elseif id then
    return { queue = queue, priority = priority, id = id, is_single = true }
  end
end

--- The best job of a queue with jobs that may have to be placed again: it places as few as possible.
---@return table? head
---@return boolean? is_more if the search was cut short
local function best_unsettled(queue)
  while true do
    local place, is_more = best_lane(queue, false)
    if is_more then
      return nil, true
    end
    local members = call("ZRANGE", queues.key(queue, states.QUEUED), 0, PAGE - 1, "WITHSCORES")
    local priority, id = tonumber(members[2]), members[1]
    if not id or is_first(place, priority, id) then
      return head_of(queue, place, priority, id)
    end
    if placement.review_all(queue, members, true) == id then
      return head_of(queue, place, priority, id)
    elseif not budget.is_left() then
      return nil, true
    end
  end
end

--- After another step: whether changes are still pending, or keys that opened have not sent their lanes yet.
---@return boolean
function M.is_behind()
  local state = meta.state
  if state[meta.PENDING] ~= 0 and not rollout.carry_out() then
    return true
  end
  return state[meta.NEXT_DUE] <= state[meta.NOW_MS] and select(2, parking.sweep(STEPS))
end

--- Whether the best job of a queue can be found without flushing the call's writes.
---@return boolean
function M.sees_all(queue)
  return meta.state[meta.PENDING] == 0 and queue[queues.VERSION] >= meta.state[meta.ADDED]
    and not queues.has(queue, queues.UNSORTED) and not batch.adds[queues.key(queue, states.IN_LANE)]
    and not batch.removals[queues.key(queue, states.QUEUED)]
end

---@return table? head as of heads.of_queue
---@return boolean? is_more
function M.best(queue)
  if M.is_behind() then
    return nil, true
  end
  local is_settled = placement.is_settled(queue)
  if not is_settled and queues.has(queue, queues.UNSORTED) then
    placement.walk(queue)
    if queues.has(queue, queues.UNSORTED) then
      return nil, true
    end
    is_settled = placement.is_settled(queue)
  end
  if not is_settled then
    return best_unsettled(queue)
  end
  local priority, id = first_plain(queue)
  local place, is_more = best_lane(queue, true)
  if is_more then
    return nil, true
  end
  return head_of(queue, place, priority, id)
end

--- The best job that may start and is accepted, among the first of each set of a queue with lanes whose best job is not
--- accepted. Ignores the turns of groups in a fair queue.
---@param accepts fun(of: table?): boolean
---@return table? head
function M.find(queue, most, accepts)
  local is_settled = placement.is_settled(queue)
  local best
  for _, state in ipairs({ states.QUEUED, states.IN_LANE }) do
    local waiting = call("ZRANGE", queues.key(queue, state), 0, most - 1, "WITHSCORES")
    for i = 1, #waiting, 2 do
      local id, priority = waiting[i], tonumber(waiting[i + 1])
      local job = jobs.read(id)
      if best and not lane_index.is_before(priority, id, best.priority, best.id) then
        break
      end
      if accepts(job) then
        if not is_settled then
          place_again(job, queue)
        end
        local units = job_units.of(job)
        local lacking
        if units then
          keyrecord.fetch(units[job_units.ENTRIES])
          lacking = room.lacking(units[job_units.ENTRIES])
        end
        if lacking then
          -- Also where it stays among those that may start: when the key opens, somebody must be woken.
          local lane = units[job_units.LANE]
          local head_priority, head_id = lanes.head(lane)
          parking.park(queue, lacking, {
            priority = head_priority, id = head_id, lane = lane, path = units[job_units.PATH],
          })
        else
          best = { queue = queue, priority = priority, id = id, is_single = true }
          best.place = units and {
            priority = priority, id = id, member = "", lane = units[job_units.LANE], path = units[job_units.PATH],
            job = job, units = units,
          }
          break
        end
      end
    end
  end
  return best
end

--- Whether a head found before may still start.
---@param head table of a lane
---@return boolean
function M.may_start(head)
  return not room.lacking(head.place.units[job_units.ENTRIES])
end

return M
