-- What is wrong now, the worst first: queues that wait longer than usual, or that nobody serves, hung and dead workers,
-- failures that are new or more than usual, limits whose paths lead nowhere.
--
-- Alerts of a page are in order; over several pages of a large namespace, by `weight`, the greatest first.
--
-- @arg    queue   queue?   only what concerns this one
-- @arg    cursor  cursor?
-- @reply  page<Alert> alerts
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   each
-- @http   GET /alerts
local alerts = require "jqlua.alerts.alerts"
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local checks = require "jqlua.alerts.checks"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"

local AT_ONCE = 200

-- What is looked at, in this order. A cursor is the letter of a part, and the name that was looked at last.
local PARTS = {
  { "q", keys.QUEUE_NAMES, checks.check_queue },
  { "c", keys.CONSTRAINT_IDS, checks.check_constraint },
  { "w", keys.WORKER_IDS, checks.check_worker },
  { "f", keys.FAILED_GROUPS, checks.check_failures },
}

--- Looks at all of a part behind a name, as far as the budget goes.
---@return string? last the name at which it stopped
local function look(part, last)
  repeat
    local low = last == "" and "-" or "(" .. last
    local names = redis.call("ZRANGEBYLEX", part[2], low, "+", "LIMIT", 0, AT_ONCE)
    for _, name in ipairs(names) do
      part[3](name)
      last = name
      if not budget.pay(budget.LOOK) then
        return last
      end
    end
  until #names < AT_ONCE
end

local spec = arguments.spec(HEAD)
local queue, cursor = spec.queue, spec.cursor or ""
if queue ~= nil then
  check.refuse(cursor ~= "" and "INVALID queue: expected either queue or cursor, got both")
  checks.check_queue(queue)
  return { "", unpack(alerts.encode()) }
end
check.refuse(cursor ~= "" and not cursor:find("^[qcwf]") and check.problem("cursor", check.CURSOR, cursor))
if cursor == "" then
  checks.check_sweeps()
end
local onward = ""
for _, part in ipairs(PARTS) do
  if cursor == "" or cursor:sub(1, 1) == part[1] then
    local last = look(part, cursor:sub(2))
    cursor = ""
    if last then
      onward = part[1] .. last
      break
    end
  end
end
return { onward, unpack(alerts.encode()) }
