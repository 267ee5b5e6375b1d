-- What delayed a job's first start: the last of its keys to have no room.
local constraints = require "jqlua.limits.constraints"
local extras = require "jqlua.job.extras"
local jobs = require "jqlua.job.jobs"
local keyrecord = require "jqlua.limits.keyrecord"
local loaded = require "jqlua.limits.loaded"
local job_units = require "jqlua.limits.job_units"

local M = {}

-- Shorter delays are not recorded.
local SHORTEST_MS = 1000

local function keep(job, entry, until_ms)
  local definition = constraints.load_number(entry[job_units.NUMBER])
  if definition then
    local extra = extras.read(job)
    extra.k = { definition.i, until_ms }
    extras.save(job, extra)
  end
end

local function look(job, entries)
  local last_ms, last = 0, nil
  for i = 1, #entries do
    local entry = entries[i]
    local key = loaded.limits[entry[job_units.NUMBER]] and loaded.keys[entry[job_units.NAME]]
    local until_ms = key and keyrecord.closed_before(key)
    if until_ms and until_ms > last_ms then
      last_ms, last = until_ms, entry
    end
  end
  if last then
    local ready_ms = job[jobs.OPTIONS] ~= "" and jobs.options(job).ready_ms or jobs.created_ms(job[jobs.ID])
    if last_ms - ready_ms >= SHORTEST_MS then
      keep(job, last, last_ms)
    end
  end
end

--- Records what delayed a job that starts for the first time.
---@param entries table[] of units, fetched, all with room
function M.note(job, entries)
  for i = 1, #entries do
    local key = loaded.keys[entries[i][job_units.NAME]]
    if key.closed_ms + key.hold_ms + key.opens_ms > 0 then
      return look(job, entries)
    end
  end
end

return M
