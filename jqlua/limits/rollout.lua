-- Rolls out changes and removals of constraints: their keys are looked at again, in steps as far as a call's budget
-- goes. The rest is due at once.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local constraints = require "jqlua.limits.constraints"
local due = require "jqlua.base.due"
local keyrecord = require "jqlua.limits.keyrecord"
local parking = require "jqlua.limits.parking"

local M = {}

local call = redis.call

local PAGE = 50

--- Whether some keys of a constraint are still to be looked at.
---@param number string
function M.is_pending(number)
  return call("HEXISTS", keys.CHANGES, number) == 1
end

--- Looks at further keys of a constraint whose limits changed, or which was removed.
---@param number string its digits
---@return number count of keys
function M.go_on(number)
  local at, count = call("HGET", keys.CHANGES, number), 0
  while at and budget.pay(budget.LOOK) do
    local from = at == "" and "-" or "(" .. at:sub(2)
    local values = call("ZRANGEBYLEX", keys.KEYS_OF .. number, from, "+", "LIMIT", 0, PAGE)
    local is_last = #values < PAGE
    for i, value in ipairs(values) do
      at, count = "=" .. value, count + 1
      parking.review(keyrecord.load(tonumber(number), value))
      if not budget.is_left() and i < #values then
        is_last = false
        break
      end
    end
    at = not is_last and at
  end
  if at then
    call("HSET", keys.CHANGES, number, at)
  else
    call("HDEL", keys.CHANGES, number)
    due.set(due.CONSTRAINTS .. number, meta.NONE)
  end
  return count
end

--- Looks at what is left, of all constraints: until that is done, a better lane may be missing in its queue's index.
---@return boolean # whether that was all
function M.finish()
  local numbers = call("HKEYS", keys.CHANGES)
  for _, number in ipairs(numbers) do
    M.go_on(number)
  end
  return not numbers[1] or call("EXISTS", keys.CHANGES) == 0
end

--- Looks at the keys of a constraint from the first one on.
---@param number number
function M.begin(number)
  number = string.format("%d", number)
  call("HSET", keys.CHANGES, number, "")
  due.note(due.CONSTRAINTS .. number, due.AT_ONCE)
  M.go_on(number)
end

--- Removes a constraint.
---@param definition table
function M.remove(definition)
  constraints.delete(definition)
  -- Cached lookups of queues and names must be renewed.
  meta.set(meta.VERSION, meta.state[meta.VERSION] + 1)
  M.begin(definition.n)
  meta.save_constraints()
end

return M
