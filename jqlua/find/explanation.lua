-- Explains why a job waits.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local documents = require "jqlua.values.documents"
local constraints = require "jqlua.limits.constraints"
local constraintdoc = require "jqlua.limits.constraintdoc"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local keyrecord = require "jqlua.limits.keyrecord"
local limitrecord = require "jqlua.limits.limitrecord"
local rate = require "jqlua.limits.rate"
local lane_index = require "jqlua.limits.lane_index"
local room = require "jqlua.limits.room"
local served = require "jqlua.find.served"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

local MOST_WAITED_FOR = 100

--- Whether a key has room for an entry, and if not, when it will.
---@return boolean is_open
---@return number opens_ms until when it is closed by time
---@return boolean is_full whether another job must end, too
local function outlook(limit, key, entry)
  local opens_ms = room.opens_at(limit, key, rate.cost(limit, entry[job_units.COST])) or 0
  local is_full = not entry[job_units.IS_TAKEN] and room.is_full(limit, key)
  return not is_full and opens_ms <= meta.state[meta.NOW_MS], opens_ms, is_full
end

---@return string document
---@return boolean is_open
---@return number? opens_ms nil if another job must end first
local function encode_entry(definition, entry)
  local limit, key = limitrecord.load(definition.n), keyrecord.load_named(entry[job_units.NAME], definition.n)
  local is_open, opens_ms, is_full = outlook(limit, key, entry)
  local now = meta.state[meta.NOW_MS]
  local shown = {
    id = definition.i, running = key.in_use, open = is_open, concurrency = definition.c,
    rate = constraintdoc.rate_of(definition), opens_ms = opens_ms > now and opens_ms or nil,
    starts = definition.l and not definition.s and rate.starts_in(limit, key) or nil,
    cost = definition.l and definition.kg and rate.cost(limit, entry[job_units.COST]) or nil,
    hold_ms = key.hold_ms > now and key.hold_ms or nil,
  }
  local by = constraintdoc.by_blob(definition, entry[job_units.VALUE])
  return documents.pack(shown, { by = by }), is_open, not is_full and opens_ms or nil
end

--- How many jobs come before a job.
local function count_ahead(job, queue, units)
  local state, id = job[jobs.STATE], job[jobs.ID]
  local key = state == states.IN_LANE and lane_index.jobs_key(units[job_units.LANE]) or queues.key(queue, state)
  return call("ZRANK", key, id) or 0
end

--- The constraints that have no room for a ready job.
---@param job table job
---@return string[] ids
function M.holders(job, queue)
  local ids = {}
  if meta.state[meta.VERSION] == 0 then
    return ids
  end
  for _, entry in ipairs(placement.units(job, queue, nil, false)[job_units.ENTRIES]) do
    local definition = constraints.load_number(entry[job_units.NUMBER])
    if definition then
      local key = keyrecord.load_named(entry[job_units.NAME], definition.n)
      if not outlook(limitrecord.load(definition.n), key, entry) then
        ids[#ids + 1] = definition.i
      end
    end
  end
  return ids
end

--- Adds what a waiting job waits for.
---@return string[] held documents of its constraints
local function add_waiting(shown, job)
  local queue, state = queues.load(job[jobs.QUEUE]), job[jobs.STATE]
  local start_ms, blobs = meta.state[meta.NOW_MS], {}
  if state == states.SCHEDULED or state == states.RETRYING then
    start_ms = math.max(start_ms, tonumber(call("ZSCORE", queues.key(queue, state), job[jobs.ID])))
  end
  shown.held = false
  for _, entry in ipairs(placement.units(job, queue, nil, false)[job_units.ENTRIES]) do
    local definition = constraints.load_number(entry[job_units.NUMBER])
    if definition then
      local is_open, opens_ms
      blobs[#blobs + 1], is_open, opens_ms = encode_entry(definition, entry)
      shown.held = shown.held or not is_open
      start_ms = start_ms and opens_ms and math.max(start_ms, opens_ms) or nil
    end
  end
  shown.paused = queue[queues.PAUSED] ~= 0
  shown.ahead = count_ahead(job, queue, job_units.of(job))
  shown.workers, shown.waiting = served.counts(job[jobs.QUEUE])
  shown.unknown = served.is_unknown(job[jobs.QUEUE], job[jobs.NAME]) or nil
  shown.running = call("ZCARD", queues.key(queue, states.RUNNING))
  if state == states.BLOCKED then
    shown.waits_for = call("ZRANGE", keys.WAITS_FOR .. job[jobs.ID], 0, MOST_WAITED_FOR - 1)
  elseif not shown.paused then
    shown.start_ms = start_ms
  end
  return blobs
end

---@param job table job
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
