-- Compares scalars as jqlua/values/msgpack.lua reads them.
local M = {}

local byte = string.byte
local sub = string.sub

---@return boolean
function M.is_text(scalar)
  return type(scalar) == "string" and byte(scalar) == 115 -- s
end

---@return number? value the nearest double; nil for what is no number
function M.to_number(scalar)
  if type(scalar) == "number" then
    return scalar
  end
  local kind = scalar and byte(scalar)
  return (kind == 105 or kind == 100) and tonumber(sub(scalar, 2)) or nil -- i, d
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

--- Numbers and their nearest doubles, which decide unless they are equal.
local function compare_numbers(a, x, b, y)
  if x ~= y or a == b then
    return x < y and -1 or x > y and 1 or 0
  elseif byte(a) ~= byte(b) then
    -- The greatest integers are nearest to 2^64, which is no integer here.
    return byte(a) == 105 and -1 or 1
  end
  -- Integers with the same nearest double. Digits are in the same order in any locale.
  local is_less = #a < #b or #a == #b and a < b
  return is_less == (x > 0) and -1 or 1
end

---@return number? sign -1, 0 or 1; nil when they are not both numbers or both texts
function M.compare(a, b)
  if M.is_text(a) then
    return M.is_text(b) and compare_texts(a, b) or nil
  end
  local x, y = M.to_number(a), M.to_number(b)
  return x and y and compare_numbers(a, x, b, y) or nil
end

return M
