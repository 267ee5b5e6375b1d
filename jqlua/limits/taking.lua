-- Takes units of keys when a job starts, and gives them back when it stops running.
local keyrecord = require "jqlua.limits.keyrecord"
local parking = require "jqlua.limits.parking"
local room = require "jqlua.limits.room"
local job_units = require "jqlua.limits.job_units"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"

local M = {}

--- Takes a unit of each of a starting job's keys.
---@param units table fetched, all with room
function M.take(units)
  local entries = units[job_units.ENTRIES]
  for i = 1, #entries do
    local entry = entries[i]
    local limit, key = keyrecord.limits[entry[job_units.NUMBER]], keyrecord.keys[entry[job_units.NAME]]
    if limit then
      keyrecord.count(key, 1)
      if limit.rate > 0 then
        room.note_start(limit, key)
      end
    end
  end
end

--- Gives back the units of a job that stops running; one that waited has none. It waits in no lane then. A constraint
--- that was removed counts nothing any more.
function M.leave(job)
  local units = job_units.of(job)
  if not units then
    return
  end
  local entries = units[job_units.ENTRIES]
  if job[jobs.STATE] == states.RUNNING then
    keyrecord.fetch(entries)
    for i = 1, #entries do
      if keyrecord.limits[entries[i][job_units.NUMBER]] then
        local key = keyrecord.keys[entries[i][job_units.NAME]]
        keyrecord.count(key, -1)
        parking.reopen(key)
      end
    end
  end
  job_units.put(job, nil)
end

return M
