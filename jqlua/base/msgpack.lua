-- MessagePack of clients as cmsgpack reads it, with what it refuses or misreads in a form that it reads: bin and ext
-- are texts of their bytes, integers from 2^63 on are floats. Numbers are doubles.
--
-- A scalar is what is equal exactly when values are: a number, or text that begins with its kind: "s<text>", "t" and
-- "f"; of nil "n".
local M = {}

local byte = string.byte
local sub = string.sub

-- Longer values are not read: the tables may take many times their size.
local MOST_BYTES = 1048576
-- Stands for nil where that is to be seen: no text is this byte alone.
local NIL = "\255"
-- By first byte, from 0xCA to 0xD8: the size of the whole value.
local SIZES = "\5\9\2\3\5\9\2\3\5\9\3\4\6\10\18"

--- The same as cmsgpack can read it. Heads are looked at one after the other, whatever holds what.
---@param shows_nil? boolean
---@return string bytes
function M.readable(blob, shows_nil)
  local parts, from, pos = {}, 1, string.find(blob, "[\160-\223]")
  local function put(head, behind)
    parts[#parts + 1] = sub(blob, from, pos - 1) .. head
    from = behind
  end
  while pos do
    local head, size = byte(blob, pos), 1
    if head < 0xC0 then
      size = head - 0x9F
    elseif head == 0xC0 and shows_nil then
      put("\161" .. NIL, pos + 1)
    elseif head >= 0xCA and head <= 0xD8 then
      size = byte(SIZES, head - 0xC9)
      if head == 0xCF then
        local high, low = struct.unpack(">I4I4", blob, pos + 1)
        put(struct.pack(">Bd", 0xCB, high * 4294967296 + low), pos + 9)
      elseif head >= 0xD4 then
        put(string.char(0xA0 + size - 1), pos + 1)
      end
    elseif head >= 0xDC and head <= 0xDF then
      size = head % 2 == 0 and 3 or 5
    elseif head >= 0xC4 and head <= 0xDB then
      local width = 2 ^ ((head - 0xC4) % 3)
      local length = struct.unpack(">I" .. width, blob, pos + 1)
      size = 1 + width + length
      if head <= 0xC6 then
        put(string.char(head + 0x15), pos + 1)
      elseif head <= 0xC9 then
        size = size + 1
        put(struct.pack(">BI4", 0xDB, length + 1), pos + 1 + width)
      end
    end
    pos = string.find(blob, "[\160-\223]", pos + size) -- those between are of one byte each
  end
  return table.concat(parts) .. sub(blob, from)
end

local function read_any(blob, shows_nil)
  return cmsgpack.unpack_one(M.readable(blob, shows_nil))
end

--- Reads a value.
---@param shows_nil? boolean whether nil in it is to be seen (see is_nil); otherwise it is not there
---@return boolean is_whole whether it is one value, and nothing behind it
---@return any value
function M.read(blob, shows_nil)
  if #blob == 0 or #blob > MOST_BYTES then
    return false
  end
  local is_read, rest, value = false, nil, nil
  if not shows_nil and not string.find(blob, "\207", 1, true) then
    is_read, rest, value = pcall(cmsgpack.unpack_one, blob)
  end
  if not is_read then
    is_read, rest, value = pcall(read_any, blob, shows_nil)
  end
  if is_read and rest == -1 then
    return true, value
  end
  return false
end

---@return boolean
function M.is_nil(value)
  return value == NIL
end

---@return number|string|nil scalar nil for maps, lists and NaN, which equal nothing
function M.scalar(value)
  local kind = type(value)
  if kind == "string" then
    return value == NIL and "n" or "s" .. value
  elseif kind == "boolean" then
    return value and "t" or "f"
  end
  return kind == "number" and value == value and value or nil
end

--- A value as it names the keys of constraints; of maps and lists a digest, whatever the order of keys.
---@return string text
function M.text(value)
  if type(value) == "table" then
    local parts = {}
    for key, entry in pairs(value) do
      local text = M.text(entry)
      parts[#parts + 1] = #tostring(key) .. ":" .. tostring(key) .. #text .. ":" .. text
    end
    table.sort(parts)
    return "hm" .. redis.sha1hex(table.concat(parts))
  elseif type(value) == "number" then
    return value == value and string.format("d%.17g", value + 0) or "dnan" -- + 0: a negative zero is zero
  end
  return M.scalar(value) or "n"
end

return M
