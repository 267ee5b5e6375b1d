---@lazy
-- Constraints and their keys as readers see them.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local constraint = require "jqlua.limits.constraint"
local msgpack = require "jqlua.values.msgpack"
local ready = require "jqlua.limits.lane_index"
local keyrecord = require "jqlua.limits.keyrecord"
local limitrecord = require "jqlua.limits.limitrecord"
local parking = require "jqlua.limits.parking"
local rate = require "jqlua.limits.rate"
local room = require "jqlua.limits.room"

local M = {}

local call = redis.call
local pack = cmsgpack.pack

-- So many of the lanes that a key holds are counted.
local MOST_LANES = 1000

-- Integers that a double holds exactly.
local EXACT = 9007199254740992

local function bin(bytes)
  return struct.pack(">BI4", 0xC6, #bytes) .. bytes
end

--- An integer of up to 64 bits from its decimal digits.
local function integer(text)
  local number = tonumber(text)
  if number > -EXACT and number < EXACT then
    return pack(number)
  end
  local is_negative = text:sub(1, 1) == "-"
  local bytes = { 0, 0, 0, 0, 0, 0, 0, 0 }
  for digit in text:gmatch("%d") do
    local carry = tonumber(digit)
    for i = 8, 1, -1 do
      local sum = bytes[i] * 10 + carry
      bytes[i] = sum % 256
      carry = (sum - bytes[i]) / 256
    end
  end
  if is_negative then
    local carry = 1
    for i = 8, 1, -1 do
      local sum = 255 - bytes[i] + carry
      bytes[i] = sum % 256
      carry = (sum - bytes[i]) / 256
    end
  end
  return (is_negative and "\211" or "\207") .. string.char(unpack(bytes))
end

--- A value as a key is named by it, as MessagePack again.
local function value_blob(value)
  local kind, rest = value:sub(1, 1), value:sub(2)
  if kind == "n" then
    return "\192"
  elseif kind == "t" then
    return "\195"
  elseif kind == "f" then
    return "\194"
  elseif kind == "i" then
    return integer(rest)
  elseif kind == "d" then
    local number = rest == "inf" and math.huge or rest == "-inf" and -math.huge or tonumber(rest) or 0 / 0
    return struct.pack(">Bd", 0xCB, number)
  elseif kind == "b" then
    return bin(rest)
  elseif kind == "x" then
    return struct.pack(">BI4", 0xC9, #rest - 1) .. rest
  elseif kind == "m" then
    return msgpack.is_whole(rest) and rest or bin(rest)
  elseif kind == "h" then
    return pack("sha1:" .. rest:sub(2))
  end
  return pack(rest) -- a text
end

--- The field `by` of a key.
---@return string? blob nil when the constraint has none
function M.by_blob(definition, value)
  if not definition.b then
    return nil
  elseif type(definition.bg) == "string" then
    return value_blob(value)
  end
  local parts = { string.char(0x90 + #definition.b) }
  for _, single in ipairs(constraint.split(value, #definition.b)) do
    parts[#parts + 1] = value_blob(single)
  end
  return table.concat(parts)
end

--- The fields of one key, packed.
---@param put fun(field: string, value: any)
local function put_use(put, definition, limit, key)
  local lanes, held, left = 0, 0, MOST_LANES
  for _, place in ipairs(key[keyrecord.PLACES]) do
    local found = {}
    if left <= 0 then
      break
    end
    left = ready.count(parking.index(key[keyrecord.NAME], place), "", left, found)
    for _, jobs in pairs(found) do
      lanes, held = lanes + 1, held + jobs
    end
  end
  if limit[limitrecord.RATE] > 0 and not rate.is_smooth(limit) then
    put("starts", rate.starts_in(limit, key))
  end
  local cost = type(definition.k) == "number" and definition.k or 1
  local opens_ms = room.opens_at(limit, key, rate.cost(limit, cost))
  if opens_ms then
    put("opens_ms", opens_ms)
  end
  if key[keyrecord.HOLD_MS] > meta.state[meta.NOW_MS] then
    put("hold_ms", key[keyrecord.HOLD_MS])
  end
  budget.pay((MOST_LANES - left) * budget.LOOK)
  put("lanes", lanes)
  put("held", held)
end

---@return string map
local function map(parts)
  return struct.pack(">BI2", 0xDE, #parts) .. table.concat(parts)
end

--- A page's cursor: values are bytes, cursors are text.
---@return string
function M.cursor(value)
  return (value:gsub(".", function(character)
    return string.format("%02x", character:byte())
  end))
end

--- Checks the fields cursor and count, and takes the cursor apart.
---@return string? problem
function M.check_page(spec)
  local cursor = spec.cursor
  if cursor == nil
    or type(cursor) == "string" and #cursor <= 600 and #cursor % 2 == 0 and not cursor:find("[^0-9a-f]") then
    spec.cursor = cursor and cursor:gsub("..", function(digits)
      return string.char(tonumber(digits, 16))
    end)
    return spec.count ~= nil and not check.is_integer(spec.count, 1, 1000)
      and check.problem("count", "an integer from 1 to 1000", spec.count) or nil
  end
  return check.problem("cursor", "a cursor as the last reply gave it, or empty text", cursor)
end

--- One key of a constraint.
---@return string document
function M.encode_key(definition, value)
  local parts = {}
  local function put(field, shown)
    parts[#parts + 1] = pack(field, shown)
  end
  local limit = limitrecord.load(definition.n)
  local key = keyrecord.load(definition.n, value)
  local by = M.by_blob(definition, value)
  if by then
    parts[1] = pack("by") .. by
  end
  put("running", key[keyrecord.IN_USE])
  put_use(put, definition, limit, key)
  return map(parts)
end

---@return string document
function M.encode(definition)
  local parts = {}
  local function put(field, shown)
    parts[#parts + 1] = pack(field, shown)
  end
  local limit = limitrecord.load(definition.n)
  put("id", definition.i)
  parts[#parts + 1] = pack("match") .. definition.g
  if definition.bg then
    put("by", definition.bg)
  end
  if definition.c then
    put("concurrency", definition.c)
  end
  if definition.l then
    put("rate", { limit = definition.l, period = definition.p, smooth = definition.s })
  end
  if definition.kg then
    put("cost", definition.kg)
  end
  if definition.o then
    put("order", "strict")
  end
  if definition.x then
    put("expires_ms", definition.x)
  end
  put("running", limit[limitrecord.RUNNING])
  put("keys", call("ZCARD", keys.KEYS_OF .. definition.n))
  if not definition.b then
    put_use(put, definition, limit, keyrecord.load(definition.n, ""))
  end
  return map(parts)
end

return M
