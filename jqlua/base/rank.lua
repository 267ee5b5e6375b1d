-- Positions in sorted sets, (score, member), of jobs (priority, id): their order, and ranks.
local M = {}

local call = redis.call

---@return boolean
function M.is_before(score, member, other_score, other_member)
  return score < other_score or (score == other_score and member < other_member)
end

--- The least score of a set.
---@return number? score nil of an empty one
function M.first_score(key)
  return tonumber(call("ZRANGE", key, "0", "0", "WITHSCORES")[2])
end

--- How many members of a set are at or before a position, whether a member is there or not.
---@param score number
---@param member string
---@return number
function M.behind(key, score, member)
  local low, high = 0, call("ZCARD", key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local at = call("ZRANGE", key, middle, middle, "WITHSCORES")
    local its_score = tonumber(at[2])
    if M.is_before(score, member, its_score, at[1]) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

--- How many are before a position, and how many at or before it.
---@return number before
---@return number behind
local function around(key, score, member)
  if tonumber(call("ZSCORE", key, member) or "nan") == score then
    local before = call("ZRANK", key, member)
    return before, before + 1
  end
  local behind = M.behind(key, score, member)
  return behind, behind
end

--- The next members behind a position.
---@param at table? {score, member}; nil: from the beginning
---@param is_reversed? boolean in the order from the end to the beginning
---@return table[] members {score, member}
function M.next(key, at, most, is_reversed)
  local before, behind
  if at then
    before, behind = around(key, at[1], at[2])
  else
    before, behind = is_reversed and call("ZCARD", key) or 0, 0
  end
  local first, last = behind, behind + most - 1
  if is_reversed then
    first, last = math.max(before - most, 0), before - 1
  end
  if last < first then
    return {}
  end
  local flat = call("ZRANGE", key, first, last, "WITHSCORES")
  local count = #flat / 2
  local members = {}
  for i = 1, count do
    members[is_reversed and count + 1 - i or i] = { tonumber(flat[2 * i]), flat[2 * i - 1] }
  end
  return members
end

return M
