-- Numbers of MessagePack other than the commonest: signed ones, floats, and those of 64 bits.
local M = {}

-- From here on an integer may not be a double.
M.EXACT = 9007199254740992

--- A 64-bit integer, of two halves.
local function integer(is_signed, high, low)
  local sign = ""
  if is_signed and high >= 0x80000000 then
    sign = "-"
    high, low = 4294967295 - high, 4294967296 - low
    if low == 4294967296 then
      high, low = high + 1, 0
    end
  end
  if high < 0x200000 then
    local value = high * 4294967296 + low
    return sign == "-" and -value or value
  end
  -- 2^32 is 4294 * 10^6 + 967296, and all that follows stays below 2^53.
  local rest = high * 967296 + low
  local tail = rest % 1000000
  return string.format("i%s%.0f%06.0f", sign, high * 4294 + (rest - tail) / 1000000, tail)
end

--- A float, of its parts as a double has them.
local function float(is_negative, exponent, fraction)
  local value
  if exponent == 2047 then
    if fraction ~= 0 then
      return nil
    end
    return is_negative and "d-inf" or "dinf"
  elseif exponent == 0 then
    value = math.ldexp(fraction, -1074)
  else
    value = math.ldexp(fraction + 4503599627370496, exponent - 1075)
  end
  value = is_negative and -value or value
  if value > -M.EXACT and value < M.EXACT then
    return value
  elseif value >= -9223372036854775808 and value < 18446744073709551616 then
    return string.format("i%.0f", value)
  end
  return string.format("d%.17g", value)
end

--- Reads a number of 0xCA to 0xD3.
---@param blob string
---@param pos number where it begins
---@param head number its first byte
---@return number|string|nil scalar as jqlua/values/msgpack.lua has them; nil for NaN, and for what is truncated
function M.read(blob, pos, head)
  local a, b, c, d, e, f, g, h = string.byte(blob, pos + 1, pos + ("\4\8\1\2\4\8\1\2\4\8"):byte(head - 0xC9))
  if head == 0xD0 then
    return a and (a >= 128 and a - 256 or a)
  elseif head == 0xD1 then
    return b and (a >= 128 and a * 256 + b - 65536 or a * 256 + b)
  elseif not d then
    return nil
  end
  local first = ((a * 256 + b) * 256 + c) * 256 + d
  if head == 0xD2 then
    return a >= 128 and first - 4294967296 or first
  elseif head == 0xCA then
    local exponent = a % 128 * 2 + (b >= 128 and 1 or 0)
    if exponent == 0 then
      return math.ldexp(a >= 128 and -(first - 2147483648) or first, -149)
    end
    return float(a >= 128, exponent == 255 and 2047 or exponent + 896, first % 0x800000 * 0x20000000)
  elseif not h then
    return nil
  end
  local second = ((e * 256 + f) * 256 + g) * 256 + h
  if head == 0xCB then
    return float(a >= 128, a % 128 * 16 + (b - b % 16) / 16, first % 0x100000 * 4294967296 + second)
  end
  return integer(head == 0xD3, first, second)
end

return M
