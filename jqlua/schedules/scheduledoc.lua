-- Documents of schedules.
local scheduling = require "jqlua.schedules.scheduling"

local M = {}

local pack = cmsgpack.pack

local GIVEN = {
  "id", "every", "offset", "cron", "utc_offset", "tz", "timezone", "start", "end", "limit", "catch_up", "backlog",
  "paused", "job",
}

---@param schedule table record
---@param next_count number how many times to list, 0 for no list
---@param runs? number how many of its last jobs to list
---@return string document
function M.encode(schedule, next_count, runs)
  local parts = {}
  local function put(field, value)
    if value ~= nil then
      parts[#parts + 1] = pack(field, value)
    end
  end
  for _, field in ipairs(GIVEN) do
    put(field, schedule.s[field])
  end
  parts[#parts + 1] = pack("argument") .. schedule.a -- as it came
  put("made", schedule.m)
  put("next_ms", schedule.n)
  put("last_ms", schedule.l)
  put("last_id", schedule.i)
  if next_count > 0 then
    put("next", scheduling.upcoming(schedule, next_count))
  end
  if (runs or 0) > 0 then
    put("runs", scheduling.runs(schedule, runs))
  end
  return struct.pack(">BI2", 0xDE, #parts) .. table.concat(parts)
end

return M
