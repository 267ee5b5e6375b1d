-- Lists recurring jobs, in order of id, with the moments to come, and what became of their last jobs.
--
-- @arg    ids     list<name>? 1..1000    those named; or
-- @arg    next    integer? 0..100 = 0    with this many coming moments
-- @arg    runs    integer? 0..20 = 0     with what became of its last jobs, this many
-- @arg    cursor  cursor?
-- @arg    count   integer? 1..1000 = 100
-- @reply  page<Schedule> schedules
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   name
-- @http   GET /schedules
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"
local schedules = require "jqlua.schedules.schedules"

local MOST_MOMENTS = 2000

local spec = arguments.spec(HEAD)
local next_count, runs = spec.next or 0, spec.runs or 0
local most = math.min(1000, math.floor(MOST_MOMENTS / (next_count + runs)))
local function document(id)
  local schedule = schedules.load(id)
  return schedule and schedules.document(schedule, next_count, runs)
end

return page.listing(keys.SCHEDULE_IDS, spec, document, {
  named = "ids", most = most, price = budget.DOCUMENT + runs * budget.LOOK,
})
