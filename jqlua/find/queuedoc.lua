-- A queue's document.
local keys = require "jqlua.base.keys"
local oldest = require "jqlua.queue.oldest"
local members = require "jqlua.queue.members"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local settingspec = require "jqlua.settings.settingspec"
local queue_status = require "jqlua.find.queue_status"
local states = require "jqlua.job.states"

local M = {}

--- By what the queue is shared fairly.
---@return table[]? levels {by, weights?}; nil if it is not
function M.fair(queue)
  local raw = redis.call("GET", keys.FAIR .. queue[queues.NAME])
  if not raw then
    return nil
  end
  local levels = {}
  for i, level in ipairs(cmsgpack.unpack(raw).l) do
    levels[i] = { by = level.t }
  end
  if not levels[1] then
    return nil
  end
  local weights = redis.call("HGETALL", keys.WEIGHTS .. queue[queues.NAME])
  for i = 1, #weights, 2 do
    local level = levels[tonumber(weights[i]:sub(1, 1))]
    level.weights = level.weights or {}
    level.weights[weights[i]:sub(2)] = tonumber(weights[i + 1])
  end
  return levels
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
