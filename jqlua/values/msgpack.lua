-- MessagePack read in place from a blob. cmsgpack is of no use for arguments of clients: it rejects bin and ext, and
-- rounds large integers.
--
-- A scalar is read as something that is equal exactly when the values are. A number below 2^53 is a number; all else
-- is text that begins with its kind: "n" nil, "t" and "f", "i<decimal>" other integers of up to 64 bits (also floats
-- with such a value), "d<%.17g>" other floats, "s<bytes>" str, "b<bytes>" bin, "x<type byte><bytes>" ext. Its
-- canonical text is the same, with all numbers as "i" or "d".
--
-- Walking costs by the value and by the call, hence the order of the comparisons in here.
local M = {}

-- From here on an integer may not be a double.
M.EXACT = 9007199254740992

local byte = string.byte
local sub = string.sub

-- By first byte, from 0xCA to 0xD8: the size of the whole value.
local SIZES = "\5\9\2\3\5\9\2\3\5\9\3\4\6\10\18"
-- From 0xC4 to 0xDF: how many bytes say the length or count, 0 where none do.
local WIDTHS = "\1\2\4\1\2\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\4\2\4\2\4"

--- Reads a length or count that has bytes of its own (0xC4 to 0xC9, 0xD9 to 0xDF).
---@return number? first where the content begins, behind the type byte of an ext
---@return number length in bytes, or the count of an array or map
local function extent(blob, pos, head)
  local width = byte(WIDTHS, head - 0xC3)
  local a, b, c, d = byte(blob, pos + 1, pos + width)
  if width == 1 then
    d = a
  elseif width == 2 then
    d = b and a * 256 + b
  else
    d = d and ((a * 256 + b) * 256 + c) * 256 + d
  end
  if not d then
    return nil, 0
  end
  return pos + width + (head >= 0xC7 and head <= 0xC9 and 2 or 1), d
end

--- Walks over `left` values. What an array or map holds is added to those left: no depth is too much.
---@return number? pos behind them, nil when they are truncated or malformed
local function pass(blob, pos, left)
  while left > 0 do
    local round = left
    left = 0
    for _ = 1, round do
      local head = byte(blob, pos)
      if not head then
        return nil
      elseif head >= 0xA0 then
        if head < 0xC0 then
          pos = pos + head - 0x9F
        elseif head >= 0xE0 then
          pos = pos + 1
        elseif head >= 0xCA and head <= 0xD8 then
          pos = pos + byte(SIZES, head - 0xC9)
        elseif head >= 0xC4 then
          local first, length = extent(blob, pos, head)
          if not first then
            return nil
          elseif head < 0xDC then
            pos = first + length
          else
            pos = first
            left = left + (head < 0xDE and length or 2 * length)
            -- Each value takes at least a byte: a false count is detected here, not after a long walk.
            if left > #blob - pos + 1 then
              return nil
            end
          end
        elseif head == 0xC1 then
          return nil
        else
          pos = pos + 1
        end
      else
        pos = pos + 1
        if head >= 0x90 then
          left = left + head - 0x90
        elseif head >= 0x80 then
          left = left + 2 * (head - 0x80)
        end
      end
    end
  end
  if pos <= #blob + 1 then
    return pos
  end
end

---@param blob string
---@param pos number where a value begins
---@return number? pos behind it, nil when it is truncated or malformed
function M.skip(blob, pos)
  return pass(blob, pos, 1)
end

---@return boolean # exactly one value
function M.is_whole(blob)
  return pass(blob, 1, 1) == #blob + 1
end

---@return string? bytes of the value at pos, nil when it is truncated or malformed
function M.raw(blob, pos)
  local behind = pass(blob, pos, 1)
  return behind and sub(blob, pos, behind - 1)
end

--- Opens an array or map without reading its contents.
---@return number? first where its first element or key begins, nil when it is something else
---@return number count of elements, or of keys
---@return boolean is_map
function M.open(blob, pos)
  local head = byte(blob, pos)
  if not head or head < 0x80 then
    return nil, 0, false
  elseif head < 0x90 then
    return pos + 1, head - 0x80, true
  elseif head < 0xA0 then
    return pos + 1, head - 0x90, false
  elseif head >= 0xDC and head <= 0xDF then
    local first, count = extent(blob, pos, head)
    return first, count, head >= 0xDE
  end
  return nil, 0, false
end

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

-- By first byte, from 0xCA to 0xD2; not the unsigned integer of 64 bits.
local NUMBERS = { ">f", ">d", ">B", ">I2", ">I4", false, ">b", ">i2", ">i4" }

--- Reads a number of 0xCA to 0xD3, which is not truncated.
local function number_at(blob, pos, head)
  local format = NUMBERS[head - 0xC9]
  if not format then
    return integer(head == 0xD3, struct.unpack(">I4I4", blob, pos + 1))
  end
  local value = struct.unpack(format, blob, pos + 1)
  if value > -M.EXACT and value < M.EXACT then
    return value
  elseif value >= -9223372036854775808 and value < 18446744073709551616 then
    return string.format("i%.0f", value)
  end
  return value == value and string.format("d%.17g", value) or nil
end

--- Reads a scalar, see above.
---@param pos number where a value begins
---@return number|string|nil scalar nil for maps, arrays and NaN, which equal nothing, and for what is truncated or
--- malformed
function M.scalar(blob, pos)
  local head, size = byte(blob, pos), #blob
  if not head then
    return nil
  elseif head < 0xA0 then
    return head < 0x80 and head or nil
  elseif head < 0xC0 then
    local last = pos + head - 0xA0
    return last <= size and "s" .. sub(blob, pos + 1, last) or nil
  elseif head >= 0xE0 then
    return head - 256
  elseif head < 0xC4 then
    return head == 0xC0 and "n" or head == 0xC2 and "f" or head == 0xC3 and "t" or nil
  elseif head >= 0xDC then
    return nil
  elseif head >= 0xCA and head <= 0xD3 then
    return pos + byte(SIZES, head - 0xC9) - 1 <= size and number_at(blob, pos, head) or nil
  end
  local first, length
  if head >= 0xD4 and head <= 0xD8 then
    first, length = pos + 2, byte(SIZES, head - 0xC9) - 2
  else
    first, length = extent(blob, pos, head)
  end
  if not first or first + length - 1 > size then
    return nil
  elseif head >= 0xD9 then
    return "s" .. sub(blob, first, first + length - 1)
  elseif head <= 0xC6 then
    return "b" .. sub(blob, first, first + length - 1)
  end
  return "x" .. sub(blob, first - 1, first + length - 1)
end

---@param scalar number|string
---@return string text canonical
function M.text(scalar)
  if type(scalar) == "string" then
    return scalar
  elseif scalar % 1 == 0 then
    return string.format("i%.0f", scalar + 0) -- + 0: a negative zero is zero
  end
  return string.format("d%.17g", scalar)
end

---@param pos number where a value begins
---@return string? canonical text of a scalar; nil for maps, arrays and NaN, which equal nothing, and for what is
--- truncated or malformed
function M.canonical(blob, pos)
  local scalar = M.scalar(blob, pos)
  return scalar and M.text(scalar)
end

--- The integer that a segment of a path is written like, as scalar gives it.
local function to_integer(segment)
  if segment ~= "0" and not string.find(segment, "^%-?[1-9]%d*$") then
    return nil
  end
  local value = tonumber(segment)
  return value > -M.EXACT and value < M.EXACT and value or "i" .. segment
end

--- Reads a key of a map, as far as a path can lead to it.
---@return number? behind where its value begins, nil when the key is malformed
---@return number? first where the bytes of a text begin, nil for other keys
---@return number|string|nil integer as scalar gives it
local function read_key(blob, pos)
  local head = byte(blob, pos)
  if not head then
    return nil
  elseif head >= 0xA0 and head < 0xC0 then
    return pos + head - 0x9F, pos + 1
  elseif head >= 0xD9 and head <= 0xDB then
    local first, length = extent(blob, pos, head)
    return first and first + length, first
  elseif head < 0x80 or head >= 0xE0 or head >= 0xCC and head <= 0xD3 then
    return pass(blob, pos, 1), nil, M.scalar(blob, pos)
  end
  return pass(blob, pos, 1)
end

--- Where the value of a key begins, in a map of `count` keys whose first is at pos.
local function value_of(blob, pos, count, segment)
  local size, wanted = #segment, to_integer(segment)
  for _ = 1, count do
    local behind, first, integer_key = read_key(blob, pos)
    if not behind then
      return nil
    elseif first and behind - first == size and sub(blob, first, behind - 1) == segment
      or wanted and integer_key == wanted then
      return behind
    end
    pos = pass(blob, behind, 1)
    if not pos then
      return nil
    end
  end
end

--- Walks over a blob once, so that paths into it need not: where the values of the keys begin, of the map that it is.
---@return table? places by key (text, or an integer below 2^53; of equal ones the first); none for what is no map.
--- nil when the blob is not one whole value
function M.index(blob)
  local places = {}
  local pos, count, is_map = M.open(blob, 1)
  if not is_map then
    return M.is_whole(blob) and places or nil
  end
  for _ = 1, count do
    local behind, first, key = read_key(blob, pos)
    if not behind then
      return nil
    elseif first then
      key = sub(blob, first, behind - 1)
    end
    if key and not places[key] and (first or type(key) == "number") then
      places[key] = behind
    end
    local head = byte(blob, behind)
    -- The commonest values, without a call.
    if head and head < 0x80 then
      pos = behind + 1
    elseif head and head >= 0xA0 and head < 0xC0 then
      pos = behind + head - 0x9F
    else
      pos = pass(blob, behind, 1)
      if not pos then
        return nil
      end
    end
  end
  return pos == #blob + 1 and places or nil
end

--- Looks a segment up in the index.
---@return number? place
---@return boolean is_sure false when it must be looked for in the blob
local function place_of(places, segment)
  if places[segment] or (byte(segment) or 58) >= 58 then -- neither a digit nor the sign
    return places[segment], true
  end
  local integer_key = to_integer(segment)
  return places[integer_key], type(integer_key) ~= "string"
end

--- Follows a path. A segment is a key of a map (text, or an integer if it is written like one; the first that fits
--- counts) or an index of an array from 0. Without an index only what lies on the way is checked.
---@param segments string[]
---@param places? table the blob's index
---@return number? pos of the value the path leads to
function M.find(blob, segments, places)
  local pos, known, is_sure = 1, nil, false
  if places and segments[1] then
    known, is_sure = place_of(places, segments[1])
  end
  for depth = 1, #segments do
    local segment = segments[depth]
    local first, count, is_map = M.open(blob, pos)
    if depth == 1 and is_sure and (known or is_map) then
      pos = known
    elseif not first then
      return nil
    elseif is_map then
      pos = value_of(blob, first, count, segment)
    else
      local index = to_integer(segment)
      pos = type(index) == "number" and index >= 0 and index < count and pass(blob, first, index) or nil
    end
    if not pos or pos > #blob then
      return nil
    end
  end
  return pos
end

return M
