---@lazy
-- Limits: the part of a constraint that every start needs, and how many jobs have a unit of it.
--
-- In a script limits are a list of the fields below.
local batch = require "jqlua.base.batch"
local keys = require "jqlua.base.keys"
local loaded = require "jqlua.limits.loaded"

local M = {}

local call = redis.call

M.CONCURRENCY = 1 -- 0: none
M.RATE = 2 -- starts in a period; 0: none
M.PERIOD_MS = 3
M.SMOOTH = 4 -- 0 or 1
M.RUNNING = 5 -- jobs that have a unit
M.NUMBER = 6
local RECORD = 7 -- its Redis key
local CHANGED = 8
local FORMAT = ">dddBd"

--- As load, of a record that was read with others.
---@param record string its Redis key
---@param raw string|false
function M.decode(number, record, raw)
  local limit = false
  if raw then
    local concurrency, rate, period_ms, smooth, running = struct.unpack(FORMAT, raw)
    limit = { concurrency, rate, period_ms, smooth, running, number, record, false }
  end
  loaded.limits[number] = limit
  return limit or nil
end

---@return table? limit nil when there is no such constraint any more
function M.load(number)
  local limit = loaded.limits[number]
  if limit ~= nil then
    return limit or nil
  end
  local record = keys.LIMIT .. string.format("%d", number)
  return M.decode(number, record, call("GET", record))
end

--- Puts limits in force.
function M.set(number, concurrency, rate, period_ms, is_smooth, running)
  loaded.limits[number] = {
    concurrency, rate, period_ms, is_smooth and 1 or 0, running, number,
    keys.LIMIT .. string.format("%d", number), true,
  }
end

--- The constraint is gone.
function M.delete(number)
  loaded.limits[number] = false
  call("UNLINK", keys.LIMIT .. string.format("%d", number))
end

--- Counts jobs that have taken a unit, or given it back.
---@param more number
function M.count(limit, more)
  limit[M.RUNNING] = limit[M.RUNNING] + more
  limit[CHANGED] = true
end

--- Has those that changed written at the next flush.
function M.save_all()
  local writes = batch.writes
  for _, limit in next, loaded.limits do
    if limit and limit[CHANGED] then
      limit[CHANGED] = false
      local n = #writes
      writes[n + 1], writes[n + 2] = limit[RECORD], struct.pack(FORMAT, limit[M.CONCURRENCY], limit[M.RATE],
        limit[M.PERIOD_MS], limit[M.SMOOTH], limit[M.RUNNING])
    end
  end
end

return M
