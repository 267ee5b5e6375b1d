-- Takes units of keys when a job starts, and releases them when it stops running.
local keyrecord = require "jqlua.limits.keyrecord"
local limitrecord = require "jqlua.limits.limitrecord"
local loaded = require "jqlua.limits.loaded"
local parking = require "jqlua.limits.parking"
local rate = require "jqlua.limits.rate"
local job_units = require "jqlua.limits.job_units"

local M = {}

local function count(limit, entry, more)
  limitrecord.count(limit, more)
  keyrecord.count(loaded.keys[entry[job_units.NAME]], more)
end

--- Takes one unit without checking for room.
---@return table entry with its unit, unless the constraint was removed
function M.occupy(entry)
  local limit = limitrecord.load(entry[job_units.NUMBER])
  if not limit or entry[job_units.IS_TAKEN] then
    return entry
  end
  keyrecord.load_named(entry[job_units.NAME], entry[job_units.NUMBER])
  count(limit, entry, 1)
  return job_units.with(entry, true)
end

--- Takes a unit of each of a starting job's keys.
---@param units table fetched, all with room
function M.take(job, units)
  local entries, is_whole = units[job_units.ENTRIES], true
  for i = 1, #entries do
    local entry = entries[i]
    local limit = loaded.limits[entry[job_units.NUMBER]]
    if not limit then
      is_whole = false
    else
      if not entry[job_units.IS_TAKEN] then
        count(limit, entry, 1)
      end
      if limit.rate > 0 then
        rate.note_start(limit, loaded.keys[entry[job_units.NAME]], entry)
      end
    end
  end
  if is_whole then
    return job_units.put(job, job_units.all_taken(units))
  end
  local taken = {}
  for i, entry in ipairs(entries) do
    taken[i] = loaded.limits[entry[job_units.NUMBER]] and job_units.with(entry, true) or entry
  end
  job_units.put(job, job_units.replaced(units, taken))
end

--- Releases one unit of a job.
local function give_back(entry)
  local limit = loaded.limits[entry[job_units.NUMBER]]
  if limit then
    local key = loaded.keys[entry[job_units.NAME]]
    count(limit, entry, -1)
    parking.reopen(key)
  end
end

--- Releases all units of an ended job.
---@param units table
function M.give_back(units)
  local entries = units[job_units.ENTRIES]
  keyrecord.fetch(entries)
  for i = 1, #entries do
    if entries[i][job_units.IS_TAKEN] then
      give_back(entries[i])
    end
  end
end

--- Releases the units of a job that stops running.
---@param keeps boolean whether it keeps those of strict order, since it will run again
function M.leave(job, keeps)
  local units = job_units.of(job)
  if not units then
    return
  elseif not keeps then
    M.give_back(units)
    return job_units.put(job, nil)
  end
  local entries, left = units[job_units.ENTRIES], {}
  keyrecord.fetch(entries)
  for i, entry in ipairs(entries) do
    left[i] = entry
    if entry[job_units.IS_TAKEN] and not entry[job_units.IS_STRICT] then
      give_back(entry)
      left[i] = job_units.with(entry, false)
    end
  end
  job_units.put(job, job_units.replaced(units, left))
end

return M
