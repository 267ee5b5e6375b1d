---@lazy
-- Units of keys are taken when a job starts, and come back when it leaves off running.
local keyrecord = require "jqlua.limits.keyrecord"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local opened = require "jqlua.limits.opened"
local parking = require "jqlua.limits.parking"
local rate = require "jqlua.limits.rate"
local units = require "jqlua.limits.units"

local M = {}

local function count(limit, entry, more)
  limitrecord.count(limit, more)
  keyrecord.count(opened.keys[entry[units.NAME]], more)
end

--- Takes one unit without asking for room.
---@return table entry with its unit, unless the constraint is gone
function M.occupy(entry)
  local limit = limitrecord.load(entry[units.NUMBER])
  if not limit or entry[units.IS_TAKEN] then
    return entry
  end
  keyrecord.load_named(entry[units.NAME], entry[units.NUMBER])
  count(limit, entry, 1)
  return units.with(entry, true)
end

--- A job starts: takes a unit of each of its keys.
---@param own table units, fetched, all with room
function M.take(of, own)
  local entries, is_whole = own[units.ENTRIES], true
  for i = 1, #entries do
    local entry = entries[i]
    local limit = opened.limits[entry[units.NUMBER]]
    if not limit then
      is_whole = false
    else
      if not entry[units.IS_TAKEN] then
        count(limit, entry, 1)
      end
      if limit[limitrecord.RATE] > 0 then
        rate.note_start(limit, opened.keys[entry[units.NAME]], entry)
      end
    end
  end
  if is_whole then
    return units.put(of, units.all_taken(own))
  end
  local taken = {}
  for i, entry in ipairs(entries) do
    taken[i] = opened.limits[entry[units.NUMBER]] and units.with(entry, true) or entry
  end
  units.put(of, units.replaced(own, taken))
end

--- A unit that a job has comes back.
local function give_back(entry)
  local limit = opened.limits[entry[units.NUMBER]]
  if limit then
    local key = opened.keys[entry[units.NAME]]
    if key[keyrecord.IN_USE] == limit[limitrecord.CONCURRENCY] then
      key[keyrecord.CLOSED_MS] = meta.state[meta.NOW_MS]
    end
    count(limit, entry, -1)
    parking.reopen(key)
  end
end

--- A job has ended: all its units come back.
---@param own table
function M.give_back(own)
  local entries = own[units.ENTRIES]
  keyrecord.fetch(entries)
  for i = 1, #entries do
    if entries[i][units.IS_TAKEN] then
      give_back(entries[i])
    end
  end
end

--- A job leaves: gives its units back.
---@param keeps boolean whether it keeps those of strict order: it will run again
function M.leave(of, keeps)
  local own = units.of(of)
  if not own then
    return
  elseif not keeps then
    M.give_back(own)
    return units.put(of, nil)
  end
  local entries, left = own[units.ENTRIES], {}
  keyrecord.fetch(entries)
  for i, entry in ipairs(entries) do
    left[i] = entry
    if entry[units.IS_TAKEN] and not entry[units.IS_STRICT] then
      give_back(entry)
      left[i] = units.with(entry, false)
    end
  end
  units.put(of, units.replaced(own, left))
end

return M
