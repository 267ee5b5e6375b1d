-- The only reader of the clock. The test build replaces this module by clock_settable.
local M = {}

---@return number now milliseconds since 1970, by the Redis server's clock
---@return string seconds
---@return string micros of the second
function M.now()
  local time = redis.call("TIME")
  local ms = time[1] * 1000 + time[2] / 1000
  return ms - ms % 1, time[1], time[2]
end

return M
