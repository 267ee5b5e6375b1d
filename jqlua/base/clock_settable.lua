-- A clock that tests set: the number in <namespace>:clock. Never part of the real scripts.
local M = {}

---@return number now milliseconds since 1970
function M.now()
  return tonumber(redis.call("GET", KEYS[1] .. ":clock") or 0)
end

return M
