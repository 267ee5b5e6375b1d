-- Schedules in the namespace of a test, as short as tests want them.
local msgpack = require "support.msgpack"
local space = require "support.space"

local M = {}

--- A valid spec, but for what is said. Its jobs may run for long.
function M.spec(more)
  local spec = { id = "s", every = 10, job = { name = "a", timeout = 4e6 } }
  for field, value in pairs(more or {}) do
    spec[field] = value
  end
  if spec.cron then
    spec.every = nil
  end
  return spec
end

---@param jq table namespace
---@return function schedule, function shown, function made, function sweep
function M.of(jq)
  ---@return table document
  local function schedule(more, argument)
    return msgpack.unpack(jq:call("schedule", M.spec(more), argument or msgpack.NIL))
  end

  ---@return table? document
  local function shown(id)
    local bytes = jq:call("schedules", { ids = { id or "s" } })[2]
    return bytes and msgpack.unpack(bytes)
  end

  --- Takes the jobs that were made and wait.
  ---@return number[] their moments, in seconds from the start
  local function made(queue)
    local found = {}
    for i, job in ipairs(jq:pick({ queues = queue or "*", count = 1000 })) do
      found[i] = (job.schedule_ms - space.START_MS) / 1000
    end
    return found
  end

  return schedule, shown, made, function()
    return jq:tick(1000)
  end
end

return M
