-- A clock that tests set: the number in <namespace>:clock. Never part of the real scripts.
local M = {}

---@return number now milliseconds since 1970
---@return string seconds
---@return string micros
function M.now()
  local set = redis.call("GET", KEYS[1] .. ":clock") or "0"
  return tonumber(set), set, "0"
end

return M
