-- A queue as readers see it.
local queue = require "jqlua.queue"

local M = {}

local COUNTED = {
  "queued", "q", "scheduled", "s", "blocked", "b", "running", "r", "retrying", "t", "done", "d", "error", "e",
  "cancelled", "c",
}

---@return string map
function M.encode(owner)
  local shown = {
    name = owner[queue.NAME], paused = owner[queue.PAUSED] ~= 0, max_waiting = owner[queue.MAX_WAITING],
  }
  for i = 1, #COUNTED, 2 do
    shown[COUNTED[i]] = redis.call("ZCARD", queue.key(owner, COUNTED[i + 1]))
  end
  -- Done jobs whose result is still kept have a set of their own.
  shown.done = shown.done + redis.call("ZCARD", queue.key(owner, "k"))
  return cmsgpack.pack(shown)
end

return M
