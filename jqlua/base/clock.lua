-- The one reader of the clock. The test build replaces this module by clock_settable.
local M = {}

---@return number now milliseconds since 1970, by the Redis server's clock
---@return string micros more digits of the same moment
function M.now()
  local time = redis.call("TIME")
  local micros = time[2] / 1000
  return time[1] * 1000 + (micros - micros % 1), time[2]
end

return M
