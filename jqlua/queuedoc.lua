-- A queue as readers see it.
local keys = require "jqlua.keys"

local M = {}

local COUNTED = {
  "queued", "q", "scheduled", "s", "blocked", "b", "running", "r", "retrying", "t", "done", "d", "error", "e",
  "cancelled", "c",
}

---@return string map
function M.encode(owner)
  local shown = { name = owner.name, paused = owner.paused ~= 0, max_waiting = owner.max_waiting }
  for i = 1, #COUNTED, 2 do
    shown[COUNTED[i]] = redis.call("ZCARD", keys.SET .. COUNTED[i + 1] .. ":" .. owner.name)
  end
  -- Done jobs whose result is still kept have a set of their own.
  shown.done = shown.done + redis.call("ZCARD", keys.SET .. "k:" .. owner.name)
  return cmsgpack.pack(shown)
end

return M
