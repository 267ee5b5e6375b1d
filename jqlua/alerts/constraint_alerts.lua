-- Alerts about constraints whose paths lead nowhere: their jobs share one key.
local alerts = require "jqlua.alerts.alerts"
local budget = require "jqlua.job.budget"
local constraintdoc = require "jqlua.limits.constraintdoc"
local constraints = require "jqlua.limits.constraints"
local keyrecord = require "jqlua.limits.keyrecord"
local wording = require "jqlua.alerts.wording"

local M = {}

local NOWHERE = "n" -- the value of a path that leads nowhere
local MOST_LANES = 100

--- Whether jobs are held under the key of those in which no path leads anywhere.
---@param id string
function M.check(id)
  local definition = constraints.load(id)
  if not definition or not definition.b then
    return
  end
  local values = {}
  for i in ipairs(definition.b) do
    values[i] = NOWHERE
  end
  local key = keyrecord.load(definition.n, constraints.join(values))
  local held = key.queues[1] and constraintdoc.held_by(key, nil, MOST_LANES).jobs or 0
  budget.pay(budget.STEP)
  if held > 0 then
    local path = type(definition.bg) == "table" and table.concat(definition.bg, ", ") or definition.bg
    local count = held + key.in_use
    alerts.add({
      kind = "path", level = alerts.PROBLEM, constraint = id,
      text = string.format("Limit %s: %s leads nowhere in %s, which share one key", wording.name(id), path,
        wording.count(count, "job")),
      advice = "See the argument of one of them: the path has to lead to a value there.", values = { path = path },
    }, count)
  end
end

return M
