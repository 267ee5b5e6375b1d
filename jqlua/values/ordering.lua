-- Compares scalars (jqlua/base/msgpack.lua).
local M = {}

local byte = string.byte
local sub = string.sub

---@return boolean
function M.is_text(scalar)
  return type(scalar) == "string" and byte(scalar) == 115 -- s
end

--- Bytewise: Lua's own `<` on texts follows the server's locale.
local function compare_texts(a, b)
  if a == b then
    return 0
  end
  -- Skips equal text in large pieces.
  local at = 1
  while sub(a, at, at + 63) == sub(b, at, at + 63) do
    at = at + 64
  end
  for i = at, at + 63 do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then
      return (x or -1) < (y or -1) and -1 or 1
    end
  end
end

--- Whether a text comes before another, as in Redis' sets.
---@return boolean
function M.is_before(text, other)
  return compare_texts(text, other) < 0
end

--- Puts a text where it belongs in a list that is in order.
---@param list string[]
function M.insert(list, text)
  local low, behind = 1, #list + 1
  while low < behind do
    local middle = math.floor((low + behind) / 2)
    if M.is_before(list[middle], text) then
      low = middle + 1
    else
      behind = middle
    end
  end
  table.insert(list, low, text)
end

---@return number? sign -1, 0 or 1; nil when they are not both numbers or both texts
function M.compare(a, b)
  if M.is_text(a) then
    return M.is_text(b) and compare_texts(a, b) or nil
  elseif type(a) == "number" and type(b) == "number" then
    return a < b and -1 or a > b and 1 or 0
  end
end

return M
