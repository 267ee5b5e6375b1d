-- Alerts about schedules that never come again.
local alerts = require "jqlua.alerts.alerts"
local schedules = require "jqlua.schedules.schedules"
local wording = require "jqlua.alerts.wording"

local M = {}

---@param id string
function M.check(id)
  local schedule = schedules.load(id)
  if schedule and not schedule.n and not schedule.s.paused then
    local is_used_up = schedules.is_used_up(schedule)
    alerts.add({
      kind = "schedule", level = is_used_up and alerts.NOTE or alerts.WARNING, schedule = id,
      text = string.format("Schedule %s never comes again: %s", wording.name(id),
        is_used_up and "its limit is reached" or "its end is over, or no moment fits it"),
      advice = "Delete it, or set it anew.",
    })
  end
end

return M
