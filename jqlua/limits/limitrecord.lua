-- Limits: the part of a constraint that every start needs, with the count of its units in use.
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

--- Like load, from a record that was read with others.
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

---@return table? limit nil if the constraint was removed
function M.load(number)
  local limit = loaded.limits[number]
  if limit ~= nil then
    return limit or nil
  end
  local record = keys.LIMIT .. string.format("%d", number)
  return M.decode(number, record, call("GET", record))
end

--- Sets limits.
function M.set(number, concurrency, rate, period_ms, is_smooth, running)
  loaded.limits[number] = {
    concurrency, rate, period_ms, is_smooth and 1 or 0, running, number,
    keys.LIMIT .. string.format("%d", number), true,
  }
end

--- Removes the limits of a removed constraint.
function M.delete(number)
  loaded.limits[number] = false
  call("UNLINK", keys.LIMIT .. string.format("%d", number))
end

--- Counts units taken or released.
---@param more number
function M.count(limit, more)
  limit[M.RUNNING] = limit[M.RUNNING] + more
  limit[CHANGED] = true
end

--- Buffers those that changed for the next flush.
function M.save_all()
  for _, limit in next, loaded.limits do
    if limit and limit[CHANGED] then
      limit[CHANGED] = false
      batch.write(limit[RECORD], struct.pack(FORMAT, limit[M.CONCURRENCY], limit[M.RATE], limit[M.PERIOD_MS],
        limit[M.SMOOTH], limit[M.RUNNING]))
    end
  end
end

return M
