-- Where a job waits: in its queue's plain set, or, under constraints and in fair queues, in a lane.
--
-- That is decided when a job becomes ready. After a constraint is added, waiting jobs may be in the wrong place: each
-- is placed again before it starts, and all of them in the background, a step at a time. A queue's record has the
-- version of the set of constraints under which all were placed.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local batch = require "jqlua.base.batch"
local constraints = require "jqlua.limits.constraints"
local due = require "jqlua.base.due"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local lanes = require "jqlua.limits.lanes"
local matcher = require "jqlua.limits.matcher"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local lane_index = require "jqlua.limits.lane_index"
local parking = require "jqlua.limits.parking"
local transition = require "jqlua.life.transition"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

-- Pause between steps in the background, so that they take only part of the time.
local WALK_EVERY_MS = 2
local MOST_AT_ONCE = 10

--- By what a queue is shared fairly.
---@return table fairness {b path, t path as given; g of its own, for the groups}; without b and t: by nothing
function M.fairness(queue)
  local raw = queues.has(queue, queues.FAIR) and call("GET", keys.FAIR .. queue[queues.NAME])
  return raw and cmsgpack.unpack(raw) or { g = 0 }
end

--- The units of a job that is to wait, under the present constraints.
---@param argument? string
---@return table units
function M.units(job, queue, argument)
  local name = queue[queues.NAME]
  local is_constrained, is_fair = meta.state[meta.VERSION] > 0, queues.has(queue, queues.FAIR)
  local fixed = is_constrained and constraints.fixed(name, job[jobs.NAME])
  if fixed and not is_fair then
    fixed.units = fixed.units or job_units.of_need(name, "", "", fixed.entries)
    return fixed.units
  end
  local facts, group, group_value = constraints.facts(job, argument), "", ""
  local entries = fixed and fixed.entries or is_constrained and constraints.entries(job, facts) or {}
  if is_fair then
    local fairness = M.fairness(queue)
    if fairness.b then
      group_value = constraints.value(fairness.b, facts, job)
      group = lane_index.group_of(name, fairness.g, group_value)
    end
  end
  return job_units.of_need(name, group, group_value, entries)
end

--- Whether all jobs of a queue and name wait in the same place.
---@return boolean
function M.is_fixed(job, queue)
  return not queues.has(queue, queues.FAIR) and constraints.fixed(queue[queues.NAME], job[jobs.NAME]) ~= false
end

--- A lower bound of a queue's ready jobs.
---@return number? priority nil if there are none
---@return string? id
function M.least(queue)
  local first = call("ZRANGE", queues.key(queue, states.QUEUED), "0", "0", "WITHSCORES")
  local priority, id = tonumber(first[2]), first[1]
  local laned = queues.has(queue, queues.LANED) and lane_index.least_priority(queue)
  if laned and (not priority or laned <= priority) then
    return laned, queues.LEAST_ID
  end
  return priority, id
end

--- Finds where a job waits; its units name the lane.
---@param argument? string
---@return string state
function M.place(job, queue, argument)
  if meta.state[meta.VERSION] == 0 and job[jobs.UNITS] == "" and not queues.has(queue, queues.FAIR) then
    return states.QUEUED
  end
  job_units.put(job, M.units(job, queue, argument))
  local name, version = queue[queues.NAME], meta.state[meta.VERSION]
  if job[jobs.UNITS] == "" and queue[queues.FREE] ~= version and job[jobs.NAME] == name
    and not constraints.matching(name, name)[1] then
    queue[queues.FREE] = version
    queue[queues.CHANGED] = true
  end
  return job[jobs.UNITS] == "" and states.QUEUED or states.IN_LANE
end

--- Places a queued job again after a change; the caller saves the record.
---@param argument? string
function M.relocate(job, priority, argument)
  local queue = queues.load(job[jobs.QUEUE])
  if job[jobs.STATE] == states.IN_LANE then
    lanes.leave(queue, job)
  end
  batch.remove(queues.key(queue, job[jobs.STATE]), job[jobs.ID])
  jobs.put(job, jobs.PRIORITY, priority)
  transition.move(job, M.place(job, queue, argument), priority, true)
end

--- Makes a job ready; the caller saves the record.
---@param is_popped? boolean whether it was removed from its old set already
function M.enter(job, is_popped)
  local queue = queues.load(job[jobs.QUEUE])
  if job[jobs.STATE] == states.RUNNING then
    parking.leave(job)
  end
  if job[jobs.ATTEMPT] > 0 then
    job[jobs.ENDED_MS] = meta.state[meta.NOW_MS] -- time before this does not count as waiting
  end
  transition.move(job, M.place(job, queue), job[jobs.PRIORITY], is_popped)
end

--- Places a waiting job again; the caller flushes.
---@return boolean moved
function M.review(job, queue)
  budget.pay(budget.of_job(job))
  local new = M.units(job, queue)
  local is_laned = job_units.is_laned(new)
  if job[jobs.STATE] == states.QUEUED then
    if not is_laned then
      return false
    end
    job_units.put(job, new)
    transition.move(job, states.IN_LANE, job[jobs.PRIORITY])
  else
    local before = job_units.of(job)
    if before[job_units.LANE] == new[job_units.LANE] then
      return false
    end
    lanes.leave(queue, job)
    job_units.put(job, new)
    if is_laned then
      lanes.join(queue, job)
    else
      batch.remove(queues.key(queue, states.IN_LANE), job[jobs.ID])
      transition.move(job, states.QUEUED, job[jobs.PRIORITY], true)
    end
  end
  jobs.save(job)
  budget.pay(budget.STEP + budget.of_job(job))
  return true
end

--- Places members of a set again, as far as the call's budget goes.
---@param members string[] ids and scores
---@return number count
local function review_all(queue, members)
  local count = 0
  for i = 1, #members, 2 do
    local job = jobs.read(members[i])
    if job then
      M.review(job, queue)
    end
    count = count + 1
    if not budget.is_left() then
      break
    end
  end
  batch.flush()
  return count
end

--- Whether a constraint added since the queue's jobs were placed may match waiting ones.
local function may_concern(queue)
  local name, is_mixed = queue[queues.NAME], queues.has(queue, queues.MIXED)
  local facts = { queue = name, name = not is_mixed and name or nil }
  for _, definition in ipairs(is_mixed and constraints.all() or constraints.candidates(name, name)) do
    if definition.n > queue[queues.VERSION] and matcher.test(definition.m, facts) ~= false then
      return true
    end
  end
  return false
end

local function is_waiting(queue)
  return call("EXISTS", queues.key(queue, states.QUEUED), queues.key(queue, states.IN_LANE)) > 0
end

local function settle(queue, version)
  queue[queues.VERSION] = version
  queue[queues.CHANGED] = true
  queues.clear(queue, queues.UNSORTED)
  if not M.fairness(queue).b then
    queues.clear(queue, queues.FAIR)
  end
end

--- Whether all waiting jobs of a queue are in the right place. If not, schedules placing them.
---@return boolean
function M.is_settled(queue)
  if queue[queues.VERSION] >= meta.state[meta.ADDED] and not queues.has(queue, queues.UNSORTED) then
    return true
  end
  if not queues.has(queue, queues.UNSORTED) and not may_concern(queue) or not is_waiting(queue) then
    settle(queue, meta.state[meta.VERSION])
    return true
  end
  if call("EXISTS", keys.WALK .. queue[queues.NAME]) == 0 then
    call("SET", keys.WALK .. queue[queues.NAME], cmsgpack.pack({ v = meta.state[meta.VERSION], s = states.QUEUED }))
    due.note(due.PLACING .. queue[queues.NAME], meta.state[meta.NOW_MS])
  end
  return false
end

--- Prepares a queue for a new job.
---@return boolean is_free whether it waits in the queue's plain set when it is ready
function M.admit(new, queue)
  local name = new[jobs.NAME]
  if name ~= new[jobs.QUEUE] then
    queues.set(queue, queues.MIXED)
  end
  if queue[queues.VERSION] < meta.state[meta.ADDED] then
    M.is_settled(queue)
  end
  return queues.is_free(queue, name)
end

--- Places some more of a queue's waiting jobs again.
---@param most? number
---@return number count of jobs placed
function M.walk(queue, most)
  most = math.min(most or MOST_AT_ONCE, MOST_AT_ONCE)
  local raw = call("GET", keys.WALK .. queue[queues.NAME])
  if not raw then
    due.set(due.PLACING .. queue[queues.NAME], meta.NONE)
    return 0
  end
  local at = cmsgpack.unpack(raw)
  if at.v ~= meta.state[meta.VERSION] then
    at = { v = meta.state[meta.VERSION], s = states.QUEUED } -- again from the beginning
  end
  local key = queues.key(queue, at.s)
  local from = at.i and rank.behind(key, at.p, at.i) or 0
  local members = call("ZRANGE", key, from, from + most - 1, "WITHSCORES")
  local count = review_all(queue, members)
  at.p, at.i = tonumber(members[2 * count]) or at.p, members[2 * count - 1] or at.i
  if #members < 2 * most and 2 * count == #members then
    if at.s == states.QUEUED then
      at = { v = at.v, s = states.IN_LANE }
    else
      call("DEL", keys.WALK .. queue[queues.NAME])
      settle(queue, at.v)
      due.set(due.PLACING .. queue[queues.NAME], meta.NONE)
      return count
    end
  end
  call("SET", keys.WALK .. queue[queues.NAME], cmsgpack.pack(at))
  local next_ms = meta.state[meta.NOW_MS] + WALK_EVERY_MS
  due.set(due.PLACING .. queue[queues.NAME], next_ms)
  if next_ms < meta.state[meta.NEXT_DUE] then
    meta.set_due(next_ms)
  end
  return count
end

return M
