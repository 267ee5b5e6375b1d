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
---@return table? limit {concurrency, rate: starts in a period, both 0 for none, period_ms, id: of the constraint}; nil
--- if that was removed
function M.decode(number, raw)
  local limit = false
  if raw then
    local concurrency, rate, period_ms, at = struct.unpack(FORMAT, raw)
    limit = { concurrency = concurrency, rate = rate, period_ms = period_ms, id = raw:sub(at) }
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

--- Sets the limits of a constraint, with the next flush.
---@param definition table as module limits.constraints has it
function M.set(definition)
  local period_ms = definition.p and math.ceil(definition.p * 1000) or 0
  local raw = struct.pack(FORMAT, definition.c or 0, definition.l or 0, period_ms) .. definition.i
  M.decode(definition.n, raw)
  batch.write(record_of(definition.n), raw)
end

--- Removes the limits of a removed constraint.
function M.delete(number)
  loaded.limits[number] = false
  redis.call("UNLINK", record_of(number))
end

return M
