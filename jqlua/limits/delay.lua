---@lazy
-- What held a job before its first start: of the keys that it needs the one that was the last to have no room.
local constraint = require "jqlua.limits.constraint"
local failure = require "jqlua.life.failure"
local job = require "jqlua.job.record"
local keyrecord = require "jqlua.limits.keyrecord"
local opened = require "jqlua.limits.opened"
local units = require "jqlua.limits.units"

local M = {}

-- What held it for less is not told.
local SHORTEST_MS = 1000

---@cold
local function keep(of, entry, until_ms)
  local definition = constraint.load_number(entry[units.NUMBER])
  if definition then
    local extra = failure.extra(of)
    extra.k = { definition.i, until_ms }
    failure.save_extra(of, extra)
  end
end

---@cold
local function look(of, entries)
  local last_ms, last = 0, nil
  for i = 1, #entries do
    local entry = entries[i]
    local until_ms = opened.limits[entry[units.NUMBER]] and keyrecord.closed_before(opened.keys[entry[units.NAME]])
    if until_ms and until_ms > last_ms then
      last_ms, last = until_ms, entry
    end
  end
  if last then
    local ready_ms = of[job.OPTIONS] ~= "" and job.given(of).ready_ms or job.created_ms(of[job.ID])
    if last_ms - ready_ms >= SHORTEST_MS then
      keep(of, last, last_ms)
    end
  end
end

--- A job starts for the first time.
---@param entries table[] of units, fetched, all with room
function M.note(of, entries)
  for i = 1, #entries do
    local key = opened.keys[entries[i][units.NAME]]
    if key[keyrecord.CLOSED_MS] + key[keyrecord.HOLD_MS] + key[keyrecord.OPENS_MS] > 0 then
      return look(of, entries)
    end
  end
end

return M
