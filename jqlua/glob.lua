-- Patterns of queue names: `*` stands for any run of characters, everything else for itself.
local M = {}

---@return boolean
function M.is_pattern(text)
  return string.find(text, "*", 1, true) ~= nil
end

---@return boolean
function M.match(pattern, name)
  if pattern == "*" then
    return true
  end
  local lua = pattern:gsub("[^%w*]", "%%%0"):gsub("%*+", ".*")
  return string.find(name, "^" .. lua .. "$") ~= nil
end

return M
