-- What an audit finds, and the members of sets that it looks at.
local budget = require "jqlua.job.budget"

local M = {}

-- Of a larger set, the two ends are checked; and of each as few as that once the call's budget is spent.
local MOST_MEMBERS = 100
local FEW_MEMBERS = 5
local MEMBER = 2 -- price of one

M.list = {} -- of this call

--- Notes what is not as it should be.
---@param is_right any
---@param ... string|number words of a sentence that says what is wrong
function M.expect(is_right, ...)
  if not is_right then
    M.list[#M.list + 1] = table.concat({ ... }, " ")
  end
end

--- A lower bound of something must not lie behind it.
---@param actual number?
function M.expect_bound(what, bound, actual)
  M.expect(not actual or bound <= actual, what, "is noted as due at", bound, "but is due at", actual)
end

---@param key string zset
---@return string[]
function M.members(key)
  local most = budget.is_left() and MOST_MEMBERS or FEW_MEMBERS
  local members = redis.call("ZRANGE", key, 0, most - 1)
  local behind = redis.call("ZRANGE", key, math.max(most, redis.call("ZCARD", key) - most), -1)
  for _, member in ipairs(behind) do
    members[#members + 1] = member
  end
  budget.pay(#members * MEMBER)
  return members
end

return M
