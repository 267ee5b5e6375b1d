-- Limits: the part of a constraint that every start needs.
local batch = require "jqlua.base.batch"
local keys = require "jqlua.base.keys"
local loaded = require "jqlua.limits.loaded"

local M = {}

local FORMAT = ">ddd"

local function record_of(number)
  return keys.LIMIT .. string.format("%d", number)
end

--- Like load, from a record that was read with others.
---@param raw string|false
---@return table? limit {concurrency, rate: starts in a period, both 0 for none, period_ms}; nil if the constraint was
--- removed
function M.decode(number, raw)
  local limit = false
  if raw then
    local concurrency, rate, period_ms = struct.unpack(FORMAT, raw)
    limit = { concurrency = concurrency, rate = rate, period_ms = period_ms }
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

--- Sets limits, with the next flush.
function M.set(number, limit)
  loaded.limits[number] = limit
  batch.write(record_of(number), struct.pack(FORMAT, limit.concurrency, limit.rate, limit.period_ms))
end

--- Removes the limits of a removed constraint.
function M.delete(number)
  loaded.limits[number] = false
  redis.call("UNLINK", record_of(number))
end

return M
