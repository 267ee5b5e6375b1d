---@lazy
-- What jobs went through in this call, for those who listen. Module transition notes each change of state, and has all
-- of them written when the call's other writes are.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local settings = require "jqlua.settings.settings"

local M = {}

local call = redis.call

--- A start is noted before the job has its new attempt.
local function complete(event)
  local of = event.of
  if of then
    event.shown.attempt, event.shown.worker = of[job.ATTEMPT], of[job.WORKER]
    event.of = nil
  end
end

--- Notes a change of state; the job is in the new one.
---@param of table job
---@param from? string letter, nil for a new job
---@param to string letter
function M.note(of, from, to)
  local state, before = states.name(to), from and states.name(from)
  local is_tracked = job.options(of).track == true
  if state == before or not is_tracked and not meta.state[meta.EVENTS] then
    return
  end
  local noted = meta.state[meta.NOTED] or { last = {} }
  meta.set(meta.NOTED, noted)
  local id = of[job.ID]
  if noted.last[id] then
    complete(noted.last[id])
  end
  local event = {
    is_tracked = is_tracked, of = to == states.RUNNING and of or nil,
    shown = {
      id = id, name = of[job.NAME], queue = of[job.QUEUE], state = state, from = before or nil,
      attempt = of[job.ATTEMPT], worker = of[job.WORKER], time_ms = meta.state[meta.NOW_MS],
    },
  }
  noted.last[id] = event
  noted[#noted + 1] = event
end

--- Writes and publishes what was noted.
function M.flush()
  local noted = meta.state[meta.NOTED]
  meta.set(meta.NOTED, false)
  local most = meta.state[meta.EVENTS] and string.format("%.0f", settings.at(settings.EVENTS_MAX))
  for _, event in ipairs(noted) do
    complete(event)
    local packed = cmsgpack.pack(event.shown)
    if most then
      call("XADD", keys.EVENTS, "MAXLEN", "~", most, "*", "e", packed)
      call("SPUBLISH", keys.EVENTS, packed)
    end
    if event.is_tracked then
      call("SPUBLISH", keys.TRACKED .. event.shown.id, packed)
    end
  end
end

return M
