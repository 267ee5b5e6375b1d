-- Exports a namespace's keys as records, some in each call (module upkeep.copying). Keys are found by SCAN, so that
-- none can be missed; large ones are paged.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local copying = require "jqlua.upkeep.copying"

local M = {}

local call = redis.call
local pack = cmsgpack.pack

-- At most in one call, plus a page: records are never cut.
local MOST_BYTES = 1048576
local MOST_ELEMENTS = 5000
local MOST_SCANS = 10
local SCAN_COUNT = 100
local PAGE = 100

--- Reads elements of a list or a sorted set by their places.
---@param width number how many texts an element has
local function by_place(command, width, ...)
  local more = { ... }
  return function(key, place)
    local first = tonumber(place or 0)
    local content = call(command, key, first, first + PAGE - 1, unpack(more))
    return content, #content == width * PAGE and tostring(first + PAGE) or nil
  end
end

--- Reads elements by a cursor of Redis.
local function by_scan(command)
  return function(key, place)
    local page = call(command, key, place or "0", "COUNT", PAGE)
    return page[2], page[1] ~= "0" and page[1] or nil
  end
end

--- Pages of a key, by type: elements from a position on, and the next position, or nil at the end.
local READ = {
  string = function(key)
    return { call("GET", key) }
  end,
  list = by_place("LRANGE", 1),
  zset = by_place("ZRANGE", 2, "WITHSCORES"),
  hash = by_scan("HSCAN"),
  set = by_scan("SSCAN"),
}

--- Names the copy: each export has another.
local function copy_name()
  return redis.sha1hex(string.format("%.0f ", meta.state[meta.NOW_MS]) .. (call("GET", keys.SEQ) or "")):sub(1, 16)
end

--- The namespace's own key for a copy: without sleepers, and with everything due.
local function meta_record()
  local raw = call("GET", keys.META)
  local _, _, flags, _, version, added, secret = struct.unpack(meta.FORMAT, raw)
  return struct.pack(meta.FORMAT, meta.SCHEMA, 0, flags, 0, version, added, secret)
    .. raw:sub(meta.SETTINGS_OFFSET + 1)
end

local function is_text(value, pattern)
  return type(value) == "string" and string.find(value, pattern) ~= nil
end

---@return table? position {c copy, s cursor of SCAN, "" behind the last, k keys found and not yet written, p place in
--- the first of them, n elements of it so far}; nil if the cursor is invalid
function M.position(cursor)
  if cursor == "" then
    return { c = copy_name(), s = "0", k = {}, n = 0, is_new = true }
  end
  local ok, rest, at = pcall(cmsgpack.unpack_one, check.from_hex(cursor) or "")
  local is_valid = ok and rest == -1 and type(at) == "table" and check.is_list(at.k, 0, 1e6) and is_text(at.c, "^%x+$")
    and is_text(at.s, "^%d*$") and #at.s <= 20 and (at.p == nil or is_text(at.p, "^%d+%-?%d*$"))
    and check.is_integer(at.n, 0, 1e15)
  for _, suffix in ipairs(is_valid and at.k or {}) do
    is_valid = is_valid and type(suffix) == "string"
  end
  return is_valid and at or nil
end

--- The next record of a key.
---@return string? record nil if the key was removed
---@return number elements
local function key_record(at, suffix)
  local key = copying.key(suffix)
  local kind = call("TYPE", key).ok
  local read = READ[kind]
  if not read then
    return nil, 0
  end
  local ok, content, place = pcall(read, key, at.p)
  if not ok then
    return nil, 0 -- the key has another type by now, so the position is invalid
  end
  local before = at.n
  at.p, at.n = place, before + #content
  if not content[1] then
    return nil, 0
  end
  return pack({ "key", suffix, kind, math.max(call("PTTL", key), 0), before, content }), #content
end

--- Looks for more keys.
local function scan(at)
  -- SCAN's pattern: a namespace may have special characters.
  local pattern = KEYS[1]:gsub("[%*%?%[%]%^%\\]", "\\%0") .. ":*"
  local page = call("SCAN", at.s, "MATCH", pattern, "COUNT", SCAN_COUNT)
  at.s = page[1] ~= "0" and page[1] or ""
  for _, key in ipairs(page[2]) do
    if not copying.is_apart(key) then
      at.k[#at.k + 1] = copying.suffix(key)
    end
  end
end

---@param at table position
---@param count number records at most
---@return table reply {cursor, record, ...}
function M.page(at, count)
  local reply = { "" }
  local bytes, elements, scans, first = 0, 0, 0, 1
  if at.is_new then
    reply[2] = pack({ "begin", meta.SCHEMA, at.c })
  end
  while #reply <= count and bytes < MOST_BYTES and elements < MOST_ELEMENTS do
    local suffix = at.k[first]
    if suffix then
      local record, size = key_record(at, suffix)
      if record then
        reply[#reply + 1] = record
        bytes = bytes + #record
      end
      elements = elements + math.max(size, 1)
      if not at.p then
        first, at.n = first + 1, 0
      end
    elseif at.s == "" then
      reply[#reply + 1] = pack({ "end", at.c, meta_record() })
      return reply
    elseif scans == MOST_SCANS then
      break
    else
      scans = scans + 1
      scan(at)
    end
  end
  local left = {}
  for i = first, #at.k do
    left[#left + 1] = at.k[i]
  end
  at.k = left
  reply[1] = check.to_hex(pack({ c = at.c, s = at.s, k = at.k, p = at.p, n = at.n }))
  return reply
end

return M
