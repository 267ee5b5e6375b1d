-- Ranks in a sorted set by position, a position being (score, member).
local M = {}

local call = redis.call

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
    if its_score < score or (its_score == score and at[1] <= member) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

--- How many are before a position, and how many at or before it.
---@return number before
---@return number behind
function M.around(key, score, member)
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
    before, behind = M.around(key, at[1], at[2])
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
