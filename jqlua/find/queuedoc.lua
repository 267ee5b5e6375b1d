-- A queue's document.
local keys = require "jqlua.base.keys"
local oldest = require "jqlua.queue.oldest"
local members = require "jqlua.queue.members"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local settingspec = require "jqlua.settings.settingspec"
local queue_status = require "jqlua.find.queue_status"
local states = require "jqlua.job.states"

local M = {}

--- By what the queue is shared fairly.
---@return table? fair {by, weights?}; nil if it is not
function M.fair(queue)
  local by = placement.fairness(queue).t
  if not by then
    return nil
  end
  local fair, weights = { by = by }, redis.call("HGETALL", keys.WEIGHTS .. queue[queues.NAME])
  for i = 1, #weights, 2 do
    fair.weights = fair.weights or {}
    fair.weights[weights[i]] = tonumber(weights[i + 1])
  end
  return fair
end

---@return table document
---@return table? oldest record of its oldest ready job
local function document_of(queue)
  local shown = {
    name = queue[queues.NAME], paused = queue[queues.PAUSED] ~= 0, max_waiting = queue[queues.MAX_WAITING],
  }
  local first
  for state in states.ALL:gmatch(".") do
    local name = states.name(state)
    shown[name] = (shown[name] or 0) + members.count(queue, state)
  end
  if shown.queued > 0 then
    shown.oldest_ready_ms, first = oldest.since(queue)
  end
  if queues.is_fair(queue) then
    shown.fair = M.fair(queue)
  end
  if queues.has(queue, queues.OWN) then
    shown.settings = settingspec.show(settings.own(queue))
  end
  return shown, first
end

---@return string map
function M.encode(queue)
  return cmsgpack.pack((document_of(queue)))
end

--- The document with the queue's status.
---@param minutes? number
---@param held? number of jobs that are read
---@return string map
function M.encode_status(queue, minutes, held)
  local shown, first = document_of(queue)
  if minutes then
    queue_status.add(queue, shown, minutes, first)
  end
  if held then
    shown.held = queue_status.held(queue, held)
  end
  return cmsgpack.pack(shown)
end

return M
