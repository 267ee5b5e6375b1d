-- Explains why a job waits.
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local documents = require "jqlua.values.documents"
local constraints = require "jqlua.limits.constraints"
local constraintdoc = require "jqlua.limits.constraintdoc"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local keyrecord = require "jqlua.limits.keyrecord"
local lane_index = require "jqlua.limits.lane_index"
local room = require "jqlua.limits.room"
local served = require "jqlua.find.served"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

local MOST_WAITED_FOR = 100

--- The constraints of a waiting job.
---@return table[] each {blob: its document, is_open, opens_ms: until when it is closed by time, or nil, is_full:
--- whether another job must end, too}
local function constraints_of(job, queue)
  local found = {}
  for _, entry in ipairs(placement.units(job, queue)[job_units.ENTRIES]) do
    local key = keyrecord.load_named(entry[job_units.NAME])
    local definition = key.limit and constraints.load(key.limit.id)
    if definition then
      local shown, is_full = constraintdoc.use_of(key), room.is_full(key)
      shown.id, shown.concurrency, shown.rate = definition.i, definition.c, constraintdoc.rate_of(definition)
      shown.open = not is_full and not shown.opens_ms
      found[#found + 1] = {
        is_open = shown.open, opens_ms = shown.opens_ms, is_full = is_full,
        blob = documents.pack(shown, { by = constraintdoc.by_blob(definition, entry[job_units.VALUE]) }),
      }
    end
  end
  return found
end

--- The constraints that have no room for a ready job.
---@return string[] ids
function M.holders(job, queue)
  local ids = {}
  for _, entry in ipairs(meta.state[meta.VERSION] > 0 and placement.units(job, queue)[job_units.ENTRIES] or {}) do
    local key = keyrecord.load_named(entry[job_units.NAME])
    if key.limit and (room.is_full(key) or room.opens_at(key)) then
      ids[#ids + 1] = key.limit.id
    end
    budget.pay(budget.LOOK)
  end
  return ids
end

--- Adds what a waiting job waits for.
---@return string[] held documents of its constraints
local function add_waiting(shown, job)
  local queue, state = queues.load(job[jobs.QUEUE]), job[jobs.STATE]
  local start_ms, blobs = meta.state[meta.NOW_MS], {}
  if state == states.SCHEDULED or state == states.RETRYING then
    start_ms = math.max(start_ms, members.score(job))
  end
  shown.held = false
  for i, one in ipairs(constraints_of(job, queue)) do
    blobs[i] = one.blob
    shown.held = shown.held or not one.is_open
    start_ms = start_ms and not one.is_full and math.max(start_ms, one.opens_ms or 0) or nil
  end
  shown.paused = queue[queues.PAUSED] ~= 0
  local lane = state == states.IN_LANE and job_units.of(job)[job_units.LANE]
  shown.ahead = call("ZRANK", lane and lane_index.jobs_key(lane) or queues.key(queue, state), job[jobs.ID]) or 0
  shown.workers, shown.waiting = served.counts(job[jobs.QUEUE])
  shown.unknown = served.is_unknown(job[jobs.QUEUE], job[jobs.NAME]) or nil
  shown.running = members.count(queue, states.RUNNING)
  if state == states.BLOCKED then
    shown.waits_for = call("ZRANGE", keys.WAITS_FOR .. job[jobs.ID], 0, MOST_WAITED_FOR - 1)
  elseif not shown.paused then
    shown.start_ms = start_ms
  end
  return blobs
end

---@return string document
function M.encode(job)
  local shown = {
    id = job[jobs.ID], status = states.name(job[jobs.STATE]), queue = job[jobs.QUEUE], name = job[jobs.NAME],
  }
  if not states.is_of(job[jobs.STATE], states.WAITING) then
    return documents.pack(shown)
  end
  local held = add_waiting(shown, job)
  return documents.pack(shown, { constraints = documents.list(held) })
end

return M
