-- Events of this call, for subscribers. Module transition records each change of state, and writes all events with the
-- call's other writes. Other events are reported where they happen.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local settings = require "jqlua.settings.settings"

local M = {}

local call = redis.call

---@param shown table the event's own fields; common ones are added
local function add(job, shown)
  local is_tracked = jobs.options(job).track == true
  if not is_tracked and not meta.state[meta.EVENTS] then
    return
  end
  local noted, id = meta.state[meta.NOTED] or {}, job[jobs.ID]
  shown.id, shown.name, shown.queue = id, job[jobs.NAME], job[jobs.QUEUE]
  shown.attempt, shown.worker, shown.time_ms = job[jobs.ATTEMPT], job[jobs.WORKER], meta.state[meta.NOW_MS]
  noted[#noted + 1] = { cmsgpack.pack(shown), is_tracked and id }
  meta.set(meta.NOTED, noted)
end

--- Records a change of state; the job is in the new one.
---@param from? string letter, nil for a new job
---@param to string letter
function M.note(job, from, to)
  local state, before = states.name(to), from and states.name(from)
  if state ~= before then
    add(job, { state = state, from = before or nil })
  end
end

--- Records an event other than a change of state.
---@param what string its name
---@param more? table further fields
function M.report(job, what, more)
  local shown = more or {}
  shown.event, shown.state = what, states.name(job[jobs.STATE])
  add(job, shown)
end

--- Writes and publishes the recorded events.
function M.flush()
  local noted = meta.state[meta.NOTED]
  meta.set(meta.NOTED, false)
  local most = meta.state[meta.EVENTS] and string.format("%.0f", settings.at(settings.EVENTS_MAX))
  for _, event in ipairs(noted) do
    local packed, tracked_id = event[1], event[2]
    if most then
      call("XADD", keys.EVENTS, "MAXLEN", "~", most, "*", "e", packed)
      call("SPUBLISH", keys.EVENTS, packed)
    end
    if tracked_id then
      call("SPUBLISH", keys.TRACKED .. tracked_id, packed)
    end
  end
end

return M
