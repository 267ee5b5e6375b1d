---@lazy
-- Schedules as readers see them.
local scheduling = require "jqlua.schedules.scheduling"

local M = {}

local pack = cmsgpack.pack

local GIVEN = {
  "id", "every", "offset", "cron", "utc_offset", "tz", "timezone", "start", "end", "limit", "catch_up", "backlog",
  "paused", "job",
}

---@param of table record
---@param next_count number how many moments to name, 0 for no list
---@param runs? number likewise, of its last jobs
---@return string document
function M.encode(of, next_count, runs)
  local parts = {}
  local function put(field, value)
    if value ~= nil then
      parts[#parts + 1] = pack(field, value)
    end
  end
  for _, field in ipairs(GIVEN) do
    put(field, of.s[field])
  end
  parts[#parts + 1] = pack("argument") .. of.a -- as it came
  put("made", of.m)
  put("next_ms", of.n)
  put("last_ms", of.l)
  put("last_id", of.i)
  if next_count > 0 then
    put("next", scheduling.upcoming(of, next_count))
  end
  if (runs or 0) > 0 then
    put("runs", scheduling.runs(of, runs))
  end
  return struct.pack(">BI2", 0xDE, #parts) .. table.concat(parts)
end

return M
