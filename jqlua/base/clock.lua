-- The only reader of the clock. The test build replaces this module by clock_settable.
local M = {}

-- The last second as text, and in milliseconds.
local second = { false, 0 }

---@return number now milliseconds since 1970, by the Redis server's clock
---@return string seconds
---@return string micros of the second
function M.now()
  local time = redis.call("TIME")
  local seconds = time[1]
  if seconds ~= second[1] then
    second[1], second[2] = seconds, seconds * 1000
  end
  local micros = time[2] / 1000
  return second[2] + (micros - micros % 1), seconds, time[2]
end

return M
