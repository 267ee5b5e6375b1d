-- The times of a schedule, in whole milliseconds. Skipping any number of past ones is arithmetic.
local cron = require "jqlua.schedules.cron"
local zones = require "jqlua.schedules.zones"

local M = {}

local floor = math.floor

---@param seconds number
---@return number ms
local function to_ms(seconds)
  return floor(seconds * 1000 + 0.5)
end

--- Compiles a schedule's fields.
---@param spec table as given, checked
---@return table plan
function M.plan(spec)
  local plan = {
    start_ms = spec.start and to_ms(spec.start) or -math.huge, end_ms = spec["end"] and to_ms(spec["end"]) or math.huge,
  }
  if spec.every then
    plan.every_ms, plan.offset_ms = to_ms(spec.every), to_ms(spec.offset or 0)
  else
    plan.cron = cron.parse(spec.cron)
    plan.zone = spec.tz and zones.parse(spec.tz) or zones.fixed((spec.utc_offset or 0) * 60)
  end
  return plan
end

--- The first time after another.
---@return number? ms nil if there are no more
function M.next(plan, after_ms)
  after_ms = math.max(after_ms, plan.start_ms - 1)
  local at_ms
  if plan.cron then
    at_ms = cron.next(plan.cron, after_ms, plan.zone)
  else
    at_ms = plan.offset_ms + (floor((after_ms - plan.offset_ms) / plan.every_ms) + 1) * plan.every_ms
  end
  return at_ms and at_ms <= plan.end_ms and at_ms or nil
end

--- The first of the last n times at or before another.
---@param from_ms number earlier times do not count
---@param until_ms number not before from_ms
---@return number ms
function M.last(plan, from_ms, until_ms, n)
  until_ms = math.min(until_ms, plan.end_ms)
  if plan.cron then
    return cron.last(plan.cron, from_ms, until_ms, plan.zone, n)
  end
  local last_ms = plan.offset_ms + floor((until_ms - plan.offset_ms) / plan.every_ms) * plan.every_ms
  return math.max(from_ms, last_ms - (n - 1) * plan.every_ms)
end

return M
