-- Whether keys of constraints have room.
--
-- A key is closed while its jobs use all its concurrency, or until a time: because it was put on hold, or because the
-- rate has no room for the job that was checked last.
local keyrecord = require "jqlua.limits.keyrecord"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local loaded = require "jqlua.limits.loaded"
local rate = require "jqlua.limits.rate"
local job_units = require "jqlua.limits.job_units"

local M = {}

--- Whether running jobs use all the concurrency.
function M.is_full(limit, key)
  local most = limit.concurrency
  return most ~= 0 and key.in_use >= most
end

--- Until when a key is closed, other than by running jobs.
function M.closed_until(key)
  return math.max(key.hold_ms, rate.closed_until(key))
end

--- Whether a key is open, apart from what a start costs.
---@param limit table|false|nil
function M.is_open(limit, key)
  if not limit then
    return true
  end
  return M.closed_until(key) <= meta.state[meta.NOW_MS] and not M.is_full(limit, key)
end

--- The first entry without room.
---@param entries table[] of units, fetched
---@return table? entry
function M.lacking(entries)
  for i = 1, #entries do
    local entry = entries[i]
    local limit, key = loaded.limits[entry[job_units.NUMBER]], loaded.keys[entry[job_units.NAME]]
    if not M.is_open(limit, key) or limit and limit.rate > 0 and not rate.has_room(limit, key) then
      return entry
    end
  end
end

--- When a key opens, if known, without changes.
---@return number? opens_ms
function M.opens_at(limit, key)
  local opens_ms = math.max(rate.outlook(limit, key), key.hold_ms)
  return opens_ms > meta.state[meta.NOW_MS] and opens_ms or nil
end

--- Writes a key, or removes it if it is unused and its starts no longer count.
local function save(key)
  local limit = limitrecord.load(key.number)
  if not key.queues[1] and (not limit or key.in_use == 0) then
    local until_ms = limit and math.max(key.hold_ms, rate.remembers_until(limit, key)) or 0
    if until_ms <= meta.state[meta.NOW_MS] then
      return keyrecord.forget(key)
    end
    keyrecord.look_at(key, until_ms)
  end
  keyrecord.save(key)
end

--- Buffers the keys that changed for the next flush.
function M.save_all()
  for _, key in next, loaded.keys do
    if key.is_changed then
      save(key)
      key.is_changed = false
    end
  end
end

return M
