-- Where the next job of a queue stands that may start, and taking jobs from there.
--
-- A place is a table: queue, priority and id of its first job; bound_priority and bound_id, up to which jobs behind it
-- may be taken as well; is_single: none but the first. In a lane it is what lane_index.first returns, with the job, its
-- keys, and argument where that was read.
local attempts = require "jqlua.life.attempts"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local failure = require "jqlua.life.failure"
local job_units = require "jqlua.limits.job_units"
local jobs = require "jqlua.job.jobs"
local keyrecord = require "jqlua.limits.keyrecord"
local keys = require "jqlua.base.keys"
local lane_index = require "jqlua.limits.lane_index"
local lanes = require "jqlua.limits.lanes"
local meta = require "jqlua.base.meta"
local parking = require "jqlua.limits.parking"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local rollout = require "jqlua.limits.rollout"
local room = require "jqlua.limits.room"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- Keys that open by time, looked at before a choice.
local STEPS = 100
-- Jobs of each set that are searched for one that is not refused.
local LOOK = 100
-- Jobs of a lane that are taken at a time.
local MOST_AT_ONCE = 100
-- Marks in lanes.heads that a head was read.
local LOOKED = ""

-- The place of a plain queue that is compared with no other: all that it has.
local whole = { queue = false }

--- Ends a place where something else begins.
function M.bound(place, priority, id)
  if rank.is_before(priority, id, place.bound_priority, place.bound_id) then
    place.bound_priority, place.bound_id = priority, id
  end
end

--- The better of two places, of which either may be missing. It ends where the other begins.
---@return table? place
function M.better(place, other)
  if not place or not other then
    return place or other
  elseif rank.is_before(other.priority, other.id, place.priority, place.id) then
    place, other = other, place
  end
  if other.id == place.id then -- of the same queue, through another entry
    M.bound(place, other.bound_priority, other.bound_id)
  else
    M.bound(place, other.priority, other.id)
  end
  return place
end

local function place_of(queue, priority, id)
  return { queue = queue, priority = priority, id = id, bound_priority = meta.NONE, bound_id = "", is_single = false }
end

--- The first of a queue's plain jobs.
local function first_plain(queue)
  local first = call("ZRANGE", queues.key(queue, states.QUEUED), "0", "0", "WITHSCORES")
  return first[1] and place_of(queue, tonumber(first[2]), first[1])
end

--- Whether another lane may come before a lane whose entry is of a job that left.
---@param place table of the lane, as returned by lane_index.first, and the keys of its head
local function is_overtaken(place, priority, id)
  if place.group ~= "" or priority ~= place.priority or parking.holds_any(place.keys) then
    return true
  end
  return place.rival and (place.rival == place.lane
    or rank.is_before(place.bound_priority, place.bound_id, priority, id))
end

--- Moves a lane's entry to the position of its head, and sends parked lanes that it may have held back.
local function move_entry(queue, index, place, priority, id)
  lane_index.remove(index, place)
  lane_index.add(queue, priority, id, place.lane, place.group)
  parking.pass_on(queue, place.keys)
end

--- Reads the head of a lane: the first one in a call, which is likely to start, with its argument.
local function read_head(place, id)
  if lanes.heads[LOOKED] then
    return jobs.read(id)
  end
  lanes.heads[LOOKED] = true
  local raws = call("MGET", keys.JOB .. id, keys.ARGUMENT .. id)
  place.argument = raws[2]
  return jobs.from_record(id, raws[1])
end

local function place_again(job, queue)
  local is_moved = placement.review(job, queue)
  batch.flush()
  return is_moved
end

--- The best lane of a queue whose head may start now. Parks those that may not on the way.
---@return table? place
---@return boolean? is_more if the search was cut short
local function best_lane(queue, is_settled)
  local name = queue[queues.NAME]
  local index = keys.LANES .. name
  repeat
    local place, is_more = lane_index.first(index, name)
    if not place then
      return nil, is_more
    end
    local priority, id = lanes.head(place.lane)
    local job = id and read_head(place, id)
    local units = job and job_units.of(job)
    place.keys = units and keyrecord.of(units[job_units.ENTRIES])
    if not units then
      lane_index.remove(index, place)
    elseif (queues.bound(id) ~= place.id or priority ~= place.priority) and is_overtaken(place, priority, id) then
      move_entry(queue, index, place, priority, id)
    elseif job[jobs.OPTIONS] ~= "" and attempts.has_expired(job) then
      failure.expire(job)
      batch.flush()
      budget.pay(budget.of_job(job))
    elseif is_settled or not place_again(job, queue) then
      place.queue, place.job, place.id = queue, job, id
      local lacking = room.lacking(place.keys)
      if not lacking then
        return place
      end
      lane_index.remove(index, place)
      parking.park(queue, lacking, place)
      budget.pay(budget.STEP)
      parking.pass_on(queue, place.keys, lacking)
    end
  until not budget.pay(budget.LOOK)
  return nil, true
end

--- Whether keys that opened have not sent their lanes yet, after some more of them did.
---@return boolean
function M.is_behind()
  local state = meta.state
  return state[meta.NEXT_DUE] <= state[meta.NOW_MS] and (not rollout.finish() or select(2, parking.sweep(STEPS)))
end

--- The best place of a queue with lanes, or with jobs that may have to be placed again: then of as few as possible.
local function with_lanes(queue)
  if not budget.is_left() or M.is_behind() then
    return nil, true
  end
  local is_settled = placement.is_settled(queue)
  if not is_settled or batch.adds[queues.key(queue, states.IN_LANE)] then
    batch.flush() -- jobs that this call placed must be seen
  end
  if not is_settled and queues.has(queue, queues.UNSORTED) then
    placement.walk(queue)
    is_settled = placement.is_settled(queue)
    if queues.has(queue, queues.UNSORTED) then
      return nil, true
    end
  end
  repeat
    local lane, is_more = best_lane(queue, is_settled)
    if is_more then
      return nil, true
    end
    local best = M.better(lane, first_plain(queue))
    if is_settled or not best then
      return best
    end
    best.is_single = true
    local job = best ~= lane and jobs.read(best.id)
    if not job or not place_again(job, queue) then
      return best
    end
  until not budget.is_left()
  return nil, true
end

--- The best place of a queue.
---@param is_only? boolean whether it is compared with no other: of a plain queue it is all that it has, without a look
---@return table? place
---@return boolean? is_more if the search was cut short
function M.best(queue, is_only)
  if queue[queues.PAUSED] ~= 0 then
    return nil
  elseif queues.is_plain(queue) then
    whole.queue = queue
    return is_only and whole or first_plain(queue)
  end
  return with_lanes(queue)
end

--- The place of a waiting job alone, if it may start. Otherwise its lane is parked, also where it stays among those
--- that may start: when the key opens, somebody must be woken.
local function place_alone(queue, job, priority)
  local place, units = place_of(queue, priority, job[jobs.ID]), job_units.of(job)
  place.is_single = true
  if units then
    place.member, place.lane, place.group = "", units[job_units.LANE], units[job_units.GROUP]
    place.job, place.keys = job, keyrecord.of(units[job_units.ENTRIES])
    local lacking = room.lacking(place.keys)
    if lacking then
      place.priority, place.id = lanes.head(place.lane)
      parking.park(queue, lacking, place)
      return nil
    end
  end
  return place
end

--- The best job that may start and is accepted, among the first of each of a queue's sets. Ignores the turns of groups
--- in a fair queue.
---@param accepts fun(job: table?): boolean
---@return table? place
function M.find(queue, accepts)
  local is_settled = queues.is_plain(queue) or placement.is_settled(queue)
  local best
  for _, state in ipairs({ states.QUEUED, states.IN_LANE }) do
    local waiting = call("ZRANGE", queues.key(queue, state), "0", LOOK - 1, "WITHSCORES")
    for i = 1, #waiting, 2 do
      local job, priority, place = jobs.read(waiting[i]), tonumber(waiting[i + 1]), nil
      if best and not rank.is_before(priority, waiting[i], best.priority, best.id) then
        break
      elseif accepts(job) then
        if not is_settled then
          place_again(job, queue)
        end
        place = place_alone(queue, job, priority)
      end
      if place then
        best = place
        break
      end
    end
  end
  return best
end

--- The first jobs of a place: of a set, those that come before its bound.
---@param most number
---@return string[] first ids and scores
local function first_of(place, key, most)
  local waiting = call("ZRANGE", key, "0", most - 1, "WITHSCORES")
  local priority, id = place.bound_priority, place.bound_id
  for i = 3, #waiting, 2 do
    if not rank.is_before(tonumber(waiting[i + 1]), waiting[i], priority, id) then
      return { unpack(waiting, 1, i - 1) }
    end
  end
  return waiting
end

--- Records and arguments.
---@param popped string[] ids and scores, not empty
---@return (string|false)[] raws one of each by turns
local function read(popped)
  local wanted = { false, false }
  for i = 1, #popped, 2 do
    local id = popped[i]
    wanted[i], wanted[i + 1] = keys.JOB .. id, keys.ARGUMENT .. id
  end
  return call("MGET", unpack(wanted))
end

--- Takes units of a job's keys and removes it from the waiting ones of its lane.
local function take_units(queue, job, job_keys)
  budget.pay(budget.of_job(job))
  batch.remove(queues.key(queue, states.IN_LANE), job[jobs.ID])
  parking.take(job_keys)
end

--- Counts a turn of a lane's group.
local function take_turn(queue, place)
  local name = queue[queues.NAME]
  lane_index.remove(keys.LANES .. name, place)
  lane_index.serve(queue, place, job_units.of(place.job)[job_units.GROUP_VALUE])
  local priority, id = lanes.head(place.lane)
  if id then
    lane_index.add(queue, priority, id, place.lane, place.group)
  end
end

--- Whether a job may follow the first of its lane now.
local function may_follow(place, job)
  local units = job and job[jobs.STATE] == states.IN_LANE and job_units.of(job)
  return units and units[job_units.LANE] == place.lane and budget.is_left()
    and not (job[jobs.OPTIONS] ~= "" and attempts.has_expired(job)) and not room.lacking(place.keys)
end

local function take_from_lane(place, most)
  local queue, lane_keys = place.queue, place.keys
  local key, taken, raws = lane_index.jobs_key(place.lane), { place.id, place.priority }, { false, place.argument }
  -- Lanes that keys hold, and turns of groups, require a new choice after each start.
  if most > 1 and not place.is_single and place.group == "" and not parking.holds_any(lane_keys) then
    taken = first_of(place, key, math.min(most, MOST_AT_ONCE))
  end
  if taken[3] or not place.argument then
    raws = read(taken)
  end
  local ids = { place.id }
  take_units(queue, place.job, lane_keys)
  for i = 3, #taken, 2 do
    local id = taken[i]
    local job = jobs.from_record(id, raws[i])
    if not may_follow(place, job) then
      taken = { unpack(taken, 1, i - 1) }
      break
    end
    take_units(queue, job, lane_keys)
    ids[#ids + 1] = id
  end
  lanes.heads[place.lane] = nil
  call("ZREM", key, unpack(ids))
  if place.group ~= "" then
    take_turn(queue, place)
  end
  parking.pass_on(queue, lane_keys)
  if place.group ~= "" then
    parking.send_more(queue)
  end
  return taken, raws
end

--- Takes a place's first job from where it waits, and those behind it that come before all others.
---@param most number
---@return string[] popped ids and scores
---@return (string|false)[] raws at least a record and an argument of each
function M.take(place, most)
  if place.lane then
    return take_from_lane(place, most)
  end
  local key = queues.key(place.queue, states.QUEUED)
  local popped
  if place.is_single then
    call("ZREM", key, place.id)
    popped = { place.id, place.priority }
  elseif place.id and place.bound_priority < meta.NONE then
    popped = call("ZPOPMIN", key, #first_of(place, key, most) / 2)
  else
    popped = call("ZPOPMIN", key, most == 1 and "1" or most) -- a number costs more
  end
  return popped, popped[1] and read(popped)
end

return M
