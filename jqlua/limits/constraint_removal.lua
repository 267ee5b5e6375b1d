---@lazy
-- Constraints that go: by hand, or by themselves when their time is over. What they held is free.
local budget = require "jqlua.job.budget"
local rollout = require "jqlua.limits.rollout"
local constraints = require "jqlua.limits.constraints"
local due = require "jqlua.base.due"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local loaded = require "jqlua.limits.loaded"

local M = {}

--- What it held comes back in steps, the first of them now.
---@param definition table
function M.remove(definition)
  constraints.delete(definition)
  limitrecord.delete(definition.n)
  -- What is remembered of queues and names must be looked up anew.
  meta.set(meta.VERSION, meta.state[meta.VERSION] + 1)
  for name in pairs(loaded.found) do
    loaded.found[name] = nil
  end
  rollout.note(rollout.LIMITED, definition.n)
  rollout.carry_out()
  meta.save_constraints()
end

--- A constraint's time may be over.
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
