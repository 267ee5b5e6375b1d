-- Explains why a job waits.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
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
local pack = cmsgpack.pack

--- Whether a key has room for an entry, and if not, when it will.
---@return boolean is_open
---@return number opens_ms until when it is closed by time
---@return boolean is_full whether another job must end, too
local function outlook(limit, key, entry)
  local opens_ms = room.opens_at(limit, key, rate.cost(limit, entry[job_units.COST])) or 0
  local is_full = not entry[job_units.IS_TAKEN] and room.is_full(limit, key)
  return not is_full and opens_ms <= meta.state[meta.NOW_MS], opens_ms, is_full
end

local function encode_entry(definition, entry)
  local limit, key = limitrecord.load(definition.n), keyrecord.load_named(entry[job_units.NAME], definition.n)
  local is_open, opens_ms, is_full = outlook(limit, key, entry)
  local parts = { pack("id", definition.i), pack("running", key.in_use), pack("open", is_open) }
  local by = constraintdoc.by_blob(definition, entry[job_units.VALUE])
  if by then
    parts[#parts + 1] = pack("by") .. by
  end
  if definition.c then
    parts[#parts + 1] = pack("concurrency", definition.c)
  end
  if definition.l then
    parts[#parts + 1] = pack("rate", { limit = definition.l, period = definition.p, smooth = definition.s })
    if not definition.s then
      parts[#parts + 1] = pack("starts", rate.starts_in(limit, key))
    end
    if definition.kg then
      parts[#parts + 1] = pack("cost", rate.cost(limit, entry[job_units.COST]))
    end
  end
  if opens_ms > meta.state[meta.NOW_MS] then
    parts[#parts + 1] = pack("opens_ms", opens_ms)
  end
  if key.hold_ms > meta.state[meta.NOW_MS] then
    parts[#parts + 1] = pack("hold_ms", key.hold_ms)
  end
  return string.char(0x80 + #parts) .. table.concat(parts), is_open, not is_full and opens_ms or nil
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

---@param job table job
---@return string map
function M.encode(job)
  local parts = {
    pack("id", job[jobs.ID]), pack("status", states.name(job[jobs.STATE])), pack("queue", job[jobs.QUEUE]),
    pack("name", job[jobs.NAME]),
  }
  if states.is_of(job[jobs.STATE], states.WAITING) then
    local now = meta.state[meta.NOW_MS]
    local queue = queues.load(job[jobs.QUEUE])
    local is_paused = queue[queues.PAUSED] ~= 0
    local units = placement.units(job, queue, nil, false)
    local start_ms = now
    if job[jobs.STATE] == states.SCHEDULED or job[jobs.STATE] == states.RETRYING then
      start_ms = math.max(now, tonumber(call("ZSCORE", queues.key(queue, job[jobs.STATE]), job[jobs.ID])))
    end
    local is_held = false
    local entries = units[job_units.ENTRIES]
    local shown = { struct.pack(">BI2", 0xDC, 0) }
    local count = 0
    for _, entry in ipairs(entries) do
      local definition = constraints.load_number(entry[job_units.NUMBER])
      if definition then
        count = count + 1
        local is_open, opens_ms
        shown[count + 1], is_open, opens_ms = encode_entry(definition, entry)
        is_held = is_held or not is_open
        start_ms = start_ms and opens_ms and math.max(start_ms, opens_ms) or nil
      end
    end
    shown[1] = struct.pack(">BI2", 0xDC, count)
    parts[#parts + 1] = pack("paused", is_paused)
    parts[#parts + 1] = pack("constraints") .. table.concat(shown)
    parts[#parts + 1] = pack("held", is_held)
    parts[#parts + 1] = pack("ahead", count_ahead(job, queue, job_units.of(job)))
    local workers, channels = served.counts(job[jobs.QUEUE])
    parts[#parts + 1] = pack("workers", workers)
    parts[#parts + 1] = pack("waiting", channels)
    parts[#parts + 1] = served.is_unknown(job[jobs.QUEUE], job[jobs.NAME]) and pack("unknown", true) or nil
    parts[#parts + 1] = pack("running", call("ZCARD", queues.key(queue, states.RUNNING)))
    if job[jobs.STATE] == states.BLOCKED then
      local others = call("ZRANGE", keys.WAITS_FOR .. job[jobs.ID], 0, MOST_WAITED_FOR - 1)
      parts[#parts + 1] = pack("waits_for", others)
      start_ms = nil
    end
    if start_ms and not is_paused then
      parts[#parts + 1] = pack("start_ms", start_ms)
    end
  end
  return struct.pack(">BI2", 0xDE, #parts) .. table.concat(parts)
end

return M
