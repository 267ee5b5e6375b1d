-- A queue as readers see it.
local keys = require "jqlua.base.keys"
local queue = require "jqlua.queue.record"
local settings = require "jqlua.settings.settings"
local settingspec = require "jqlua.settings.settingspec"

local M = {}

local COUNTED = {
  "queued", "q", "scheduled", "s", "blocked", "b", "running", "r", "retrying", "t", "done", "d", "error", "e",
  "cancelled", "c",
}

---@cold
--- By what the queue is shared.
---@return table[]? levels {by, weights?}; nil when it is not any more
function M.fair(owner)
  local raw = redis.call("GET", keys.FAIR .. owner[queue.NAME])
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
  local weights = redis.call("HGETALL", keys.WEIGHTS .. owner[queue.NAME])
  for i = 1, #weights, 2 do
    local level = levels[tonumber(weights[i]:sub(1, 1))]
    level.weights = level.weights or {}
    level.weights[weights[i]:sub(2)] = tonumber(weights[i + 1])
  end
  return levels
end

---@return string map
function M.encode(owner)
  local shown = {
    name = owner[queue.NAME], paused = owner[queue.PAUSED] ~= 0, max_waiting = owner[queue.MAX_WAITING],
  }
  for i = 1, #COUNTED, 2 do
    shown[COUNTED[i]] = redis.call("ZCARD", queue.key(owner, COUNTED[i + 1]))
  end
  -- Done jobs whose result is still kept have a set of their own.
  shown.queued = shown.queued + redis.call("ZCARD", queue.key(owner, "w"))
  shown.done = shown.done + redis.call("ZCARD", queue.key(owner, "k"))
  if owner[queue.FLAGS] % queue.MIXED >= queue.FAIR then
    shown.fair = M.fair(owner)
  end
  if queue.has(owner, queue.OWN) then
    shown.settings = settingspec.show(settings.own(owner))
  end
  return cmsgpack.pack(shown)
end

return M
