-- Starts the jobs that were found: removes them from where they wait, takes units for those in lanes, and lets the next
-- ones follow.
local attempts = require "jqlua.life.attempts"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local delay = require "jqlua.limits.delay"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local keys = require "jqlua.base.keys"
local lanes = require "jqlua.limits.lanes"
local placement = require "jqlua.life.placement"
local loaded = require "jqlua.limits.loaded"
local parking = require "jqlua.limits.parking"
local queues = require "jqlua.queue.queues"
local lane_index = require "jqlua.limits.lane_index"
local room = require "jqlua.limits.room"
local taking = require "jqlua.limits.taking"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

-- Jobs of a lane that start at a time.
local MOST_AT_ONCE = 100

--- A lower bound of what follows the jobs of a head's lane: plain jobs, other lanes, other queues.
---@return number priority
---@return string id
local function bound_of(head)
  local priority, id = head.bound_priority, head.bound_id
  if head.plain_id and lane_index.is_before(head.plain_priority, head.plain_id, priority, id) then
    priority, id = head.plain_priority, head.plain_id
  end
  local other_priority, other_id = lane_index.rival(head.place)
  if other_priority and lane_index.is_before(other_priority, other_id, priority, id) then
    return other_priority, other_id
  end
  return priority, id
end

--- The jobs behind the head of a lane that come before all others.
---@param most number
---@return table[] jobs
local function followers(head, most)
  local place = head.place
  local waiting = call("ZRANGE", lane_index.jobs_key(place.lane), 1, math.min(most, MOST_AT_ONCE), "WITHSCORES")
  local priority, id = bound_of(head)
  local wanted, following = {}, {}
  for i = 1, #waiting, 2 do
    if not lane_index.is_before(tonumber(waiting[i + 1]), waiting[i], priority, id) then
      break
    end
    wanted[#wanted + 1] = keys.JOB .. waiting[i]
  end
  local raws = wanted[1] and call("MGET", unpack(wanted)) or {}
  for i, raw in ipairs(raws) do
    local job = jobs.from_record(waiting[2 * i - 1], raw)
    local units = job and job[jobs.STATE] == states.IN_LANE and job_units.of(job)
    if not units or units[job_units.LANE] ~= place.lane or job[jobs.OPTIONS] ~= "" and attempts.has_expired(job) then
      break
    end
    following[i] = job
  end
  return following
end

--- Takes a job's units and removes it from the waiting ones of its lane.
local function start(queue, job, units)
  budget.pay(budget.of_job(job))
  batch.remove(queues.key(queue, states.IN_LANE), job[jobs.ID])
  if job[jobs.ATTEMPT] == 0 then
    delay.note(job, units[job_units.ENTRIES])
  end
  taking.take(job, units)
end

--- Counts a turn of a lane's groups.
local function take_turn(queue, place)
  local name = queue[queues.NAME]
  lane_index.remove(lane_index.of_queue(name), name, place)
  lane_index.serve(queue, place, place.units[job_units.GROUPS])
  local priority, id = lanes.head(place.lane)
  if id then
    lane_index.add(queue, priority, id, place.lane .. place.path)
  end
end

--- Starts the head of a lane, and others behind it, as long as there is room.
---@param most number
---@return table[] jobs
local function start_lane(head, most)
  local queue, place = head.queue, head.place
  local units = place.units
  local entries = units[job_units.ENTRIES]
  local started, ids = { place.job }, { place.id }
  -- Lanes that keys hold, and turns of groups, require a new choice after each start.
  local behind = most > 1 and head.bound_id and place.path == "" and not parking.holds_any(entries)
    and placement.is_settled(queue) and followers(head, most - 1) or {}
  start(queue, place.job, units)
  for i, job in ipairs(behind) do
    local units_of_job = job_units.of(job)
    if not budget.is_left() or room.lacking(units_of_job[job_units.ENTRIES]) then
      break
    end
    start(queue, job, units_of_job)
    started[i + 1], ids[i + 1] = job, job[jobs.ID]
  end
  loaded.lookups[place.lane] = nil
  call("ZREM", lane_index.jobs_key(place.lane), unpack(ids))
  if place.path ~= "" then
    take_turn(queue, place)
  end
  parking.pass_on(queue, entries)
  if place.path ~= "" then
    parking.send_more(queue)
  end
  return started
end

--- Takes a head from where it waits, and from a lane as many behind it as come before all others.
---@param most number
---@return table[] jobs
function M.take(head, most)
  if head.place then
    return start_lane(head, most)
  end
  call("ZREM", queues.key(head.queue, states.QUEUED), head.id)
  return { jobs.read(head.id) }
end

return M
