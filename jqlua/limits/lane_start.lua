-- Heads that were found leave where they wait: those of lanes take their units, and what stands behind them may start
-- next.
local attempts = require "jqlua.life.attempts"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local delay = require "jqlua.limits.delay"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local keys = require "jqlua.base.keys"
local lanes = require "jqlua.limits.lanes"
local placement = require "jqlua.limits.placement"
local loaded = require "jqlua.limits.loaded"
local parking = require "jqlua.limits.parking"
local queues = require "jqlua.queue.queues"
local lane_index = require "jqlua.limits.lane_index"
local room = require "jqlua.limits.room"
local taking = require "jqlua.limits.taking"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

-- Jobs of a lane that start in one go.
local MOST_AT_ONCE = 100

---@cold
--- A lower bound of what comes behind the jobs of a head's lane: plain jobs, other lanes, other queues.
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

---@cold
--- The jobs behind the head of a lane that come before all others.
---@param most number
---@return table[] jobs
local function followers(head, most)
  local place = head.place
  local waiting = call("ZRANGE", lane_index.jobs_key(place.lane), 1, math.min(most, MOST_AT_ONCE), "WITHSCORES")
  local priority, id = bound_of(head)
  local wanted, found = {}, {}
  for i = 1, #waiting, 2 do
    if not lane_index.is_before(tonumber(waiting[i + 1]), waiting[i], priority, id) then
      break
    end
    wanted[#wanted + 1] = keys.JOB .. waiting[i]
  end
  local raws = wanted[1] and call("MGET", unpack(wanted)) or {}
  for i, raw in ipairs(raws) do
    local of = jobs.note(waiting[2 * i - 1], raw)
    local own = of and of[jobs.STATE] == states.IN_LANE and job_units.of(of)
    if not own or own[job_units.LANE] ~= place.lane or of[jobs.OPTIONS] ~= "" and attempts.has_expired(of) then
      break
    end
    found[i] = of
  end
  return found
end

---@cold
--- A job of a lane takes its units, and is none of those that wait any more.
local function start(owner, of, own)
  budget.pay(budget.of_job(of))
  batch.remove(queues.key(owner, states.IN_LANE), of[jobs.ID])
  if of[jobs.ATTEMPT] == 0 then
    delay.note(of, own[job_units.ENTRIES])
  end
  taking.take(of, own)
end

---@cold
--- A lane's groups have had their turn.
local function take_turn(owner, place)
  local name = owner[queues.NAME]
  lane_index.remove(lane_index.of_queue(name), name, place)
  lane_index.serve(owner, place, place.units[job_units.GROUPS])
  local priority, id = lanes.head(place.lane)
  if id then
    lane_index.add(owner, priority, id, place.lane .. place.path)
  end
end

---@cold
--- Starts the head of a lane, and others behind it, as long as there is room.
---@param most number
---@return table[] jobs
local function start_lane(head, most)
  local owner, place = head.queue, head.place
  local own = place.units
  local entries = own[job_units.ENTRIES]
  local started, ids = { place.job }, { place.id }
  -- Lanes that keys hold, and groups that have their turn, have to be looked at behind each start.
  local behind = most > 1 and head.bound_id and place.path == "" and not parking.holds_any(entries)
    and placement.is_settled(owner) and followers(head, most - 1) or {}
  start(owner, place.job, own)
  for i, of in ipairs(behind) do
    local its = job_units.of(of)
    if not budget.is_left() or room.lacking(its[job_units.ENTRIES]) then
      break
    end
    start(owner, of, its)
    started[i + 1], ids[i + 1] = of, of[jobs.ID]
  end
  loaded.found[place.lane] = nil
  call("ZREM", lane_index.jobs_key(place.lane), unpack(ids))
  if place.path ~= "" then
    take_turn(owner, place)
  end
  parking.pass_on(owner, entries)
  if place.path ~= "" then
    parking.send_more(owner)
  end
  return started
end

---@cold
--- Takes a head out of where it waits, and of a lane as many behind it as come before all others.
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
