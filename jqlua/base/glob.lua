-- Patterns of queue names: `*` stands for any run of characters, everything else for itself.
local M = {}

---@return boolean
function M.is_pattern(text)
  return string.find(text, "*", 1, true) ~= nil
end

--- In linear time, unlike a Lua pattern of many `.*`; and zero bytes are bytes like any other.
---@return boolean
function M.match(pattern, text)
  local star = string.find(pattern, "*", 1, true)
  if not star then
    return pattern == text
  elseif text:sub(1, star - 1) ~= pattern:sub(1, star - 1) then
    return false
  end
  local at = star
  while true do
    local following = string.find(pattern, "*", star + 1, true)
    if not following then
      local tail = #pattern - star
      return #text - tail + 1 >= at and (tail == 0 or text:sub(-tail) == pattern:sub(star + 1))
    end
    if following > star + 1 then
      local _, last = string.find(text, pattern:sub(star + 1, following - 1), at, true)
      if not last then
        return false
      end
      at = last + 1
    end
    star = following
  end
end

return M
