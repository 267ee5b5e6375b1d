-- Limits: the part of a constraint that every start needs, with the count of its units in use.
local batch = require "jqlua.base.batch"
local keys = require "jqlua.base.keys"
local loaded = require "jqlua.limits.loaded"

local M = {}

local FORMAT = ">dddd"

local function record_of(number)
  return keys.LIMIT .. string.format("%d", number)
end

--- Like load, from a record that was read with others.
---@param raw string|false
---@return table? limit {number of the constraint, concurrency, rate: starts in a period, both 0 for none, period_ms,
--- running: jobs that have a unit, is_changed}; nil if the constraint was removed
function M.decode(number, raw)
  local limit = false
  if raw then
    local concurrency, rate, period_ms, running = struct.unpack(FORMAT, raw)
    limit = {
      number = number, concurrency = concurrency, rate = rate, period_ms = period_ms, running = running,
      is_changed = false,
    }
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
  return M.decode(number, redis.call("GET", record_of(number)))
end

--- Sets limits.
function M.set(number, limit)
  limit.number, limit.is_changed = number, true
  loaded.limits[number] = limit
end

--- Removes the limits of a removed constraint.
function M.delete(number)
  loaded.limits[number] = false
  redis.call("UNLINK", record_of(number))
end

--- Counts units taken or released.
---@param more number
function M.count(limit, more)
  limit.running, limit.is_changed = limit.running + more, true
end

--- Buffers those that changed for the next flush.
function M.save_all()
  for _, limit in next, loaded.limits do
    if limit and limit.is_changed then
      limit.is_changed = false
      batch.write(record_of(limit.number), struct.pack(FORMAT, limit.concurrency, limit.rate, limit.period_ms,
        limit.running))
    end
  end
end

return M
