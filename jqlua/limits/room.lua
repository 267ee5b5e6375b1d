---@lazy
-- Whether keys of constraints have room.
--
-- A key is closed while as many of its jobs run as may, or until a moment: because it was put on hold, or because
-- the rate has no room for the job that was looked at last.
local keyrecord = require "jqlua.limits.keyrecord"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local loaded = require "jqlua.limits.loaded"
local rate = require "jqlua.limits.rate"
local job_units = require "jqlua.limits.job_units"

local M = {}

--- Whether as many jobs run as may.
function M.is_full(limit, key)
  local most = limit[limitrecord.CONCURRENCY]
  return most ~= 0 and key[keyrecord.IN_USE] >= most
end

--- Until when a key is closed, other than by jobs that run.
function M.closed_until(key)
  return math.max(key[keyrecord.HOLD_MS], rate.closed_until(key))
end

--- Whether a key is open, as far as that does not depend on what the start costs.
---@param limit table|false|nil
---@param has_unit boolean whether the job has its unit already
function M.is_open(limit, key, has_unit)
  if not limit then
    return true
  end
  local now = meta.state[meta.NOW_MS]
  return now >= key[keyrecord.HOLD_MS] and now >= rate.closed_until(key) and (has_unit or not M.is_full(limit, key))
end

--- The first entry that has no room.
---@param entries table[] of units, fetched
---@return table? entry
function M.lacking(entries)
  local now = meta.state[meta.NOW_MS]
  for i = 1, #entries do
    local entry = entries[i]
    local limit = loaded.limits[entry[job_units.NUMBER]]
    if limit then
      local key, most = loaded.keys[entry[job_units.NAME]], limit[limitrecord.CONCURRENCY]
      if most ~= 0 and key[keyrecord.IN_USE] >= most and not entry[job_units.IS_TAKEN]
        or key[keyrecord.HOLD_MS] > now or key[keyrecord.OPENS_MS] > now and rate.closed_until(key) > now
        or limit[limitrecord.RATE] > 0 and not rate.has_room(limit, key, entry) then
        return entry
      end
    end
  end
end

--- The moment a key opens, where that is known, for those who only read.
---@param cost number of the start that is asked about
---@return number? opens_ms
function M.opens_at(limit, key, cost)
  local opens_ms = math.max(rate.outlook(limit, key, cost), key[keyrecord.HOLD_MS])
  return opens_ms > meta.state[meta.NOW_MS] and opens_ms or nil
end

--- A key that nothing uses any more is forgotten, as soon as its starts do not count any more.
local function save(key)
  local limit = limitrecord.load(key[keyrecord.OF])
  if not key[keyrecord.PLACES][1] and (not limit or key[keyrecord.IN_USE] == 0) then
    local until_ms = limit and math.max(key[keyrecord.HOLD_MS], rate.remembers_until(limit, key)) or 0
    if until_ms <= meta.state[meta.NOW_MS] then
      return keyrecord.forget(key)
    end
    keyrecord.look_at(key, until_ms)
  end
  keyrecord.save(key)
end

--- Has the keys and limits that changed written at the next flush.
function M.save_all()
  for _, key in next, loaded.keys do
    if key[keyrecord.CHANGED] then
      save(key)
      key[keyrecord.CHANGED] = false
    end
  end
  limitrecord.save_all()
end

return M
