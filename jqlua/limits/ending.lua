---@lazy
-- Constraints that go: by hand, or by themselves when their time is over. What they held is free.
local budget = require "jqlua.job.budget"
local changes = require "jqlua.limits.rollout"
local constraint = require "jqlua.limits.constraint"
local due = require "jqlua.base.due"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local opened = require "jqlua.limits.opened"

local M = {}

--- What it held comes back in steps, the first of them now.
---@param definition table
function M.remove(definition)
  constraint.delete(definition)
  limitrecord.delete(definition.n)
  -- What is remembered of queues and names must be looked up anew.
  meta.set(meta.VERSION, meta.state[meta.VERSION] + 1)
  for name in pairs(opened.found) do
    opened.found[name] = nil
  end
  changes.note(changes.LIMITED, definition.n)
  changes.carry_out()
  meta.save_constraints()
end

--- A constraint's time may be over.
---@return number steps
function M.sweep(id)
  local definition = constraint.load(id)
  budget.pay(budget.RECORD)
  if definition and definition.x and definition.x <= meta.state[meta.NOW_MS] then
    M.remove(definition)
  else
    due.set(due.EXPIRY .. id, definition and definition.x or meta.NONE)
  end
  return 1
end

return M
