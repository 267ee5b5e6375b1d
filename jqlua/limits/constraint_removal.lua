-- Removes constraints, on request or when they expire. Jobs that they held are released.
local budget = require "jqlua.job.budget"
local rollout = require "jqlua.limits.rollout"
local constraints = require "jqlua.limits.constraints"
local due = require "jqlua.base.due"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local loaded = require "jqlua.limits.loaded"

local M = {}

--- Jobs that it held are released in steps, the first of them now.
---@param definition table
function M.remove(definition)
  constraints.delete(definition)
  limitrecord.delete(definition.n)
  -- Cached lookups of queues and names must be renewed.
  meta.set(meta.VERSION, meta.state[meta.VERSION] + 1)
  for name in pairs(loaded.lookups) do
    loaded.lookups[name] = nil
  end
  rollout.note(rollout.LIMITED, definition.n)
  rollout.carry_out()
  meta.save_constraints()
end

--- Removes a constraint if it has expired.
---@return number steps
function M.sweep(id)
  local definition = constraints.load(id)
  budget.pay(budget.RECORD)
  if definition and definition.x and definition.x <= meta.state[meta.NOW_MS] then
    M.remove(definition)
  else
    due.set(due.EXPIRY .. id, definition and definition.x or meta.NONE)
  end
  return 1
end

return M
