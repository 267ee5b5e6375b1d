-- Exports a namespace as records, each a MessagePack list, and imports them into one that is not set up.
--   {"begin", schema, copy}                    copy: which export it is
--   {"key", suffix, type, ttl_ms, content}     suffix: behind "<namespace>:"; ttl_ms: 0 for none; content: texts
--   {"end", copy, meta}
-- Content: of a string itself, of a set its elements, of a hash field and value, of a sorted set member and score: each
-- in turn. A large key has several records, in any order.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local settingspec = require "jqlua.settings.settingspec"

local M = {}

local call = redis.call
local pack = cmsgpack.pack

-- At most in one call of export, plus a page: records are never cut.
local MOST_BYTES = 1048576
local MOST_ELEMENTS = 5000
local MOST_SCANS = 10
local SCAN_COUNT = 100
local PAGE = 100

-- By type, what reads a page, how many texts an element has, and what writes some.
local SCANS = { hash = "HSCAN", set = "SSCAN", zset = "ZSCAN" }
local WIDTH = { string = 1, set = 1, hash = 2, zset = 2 }
local WRITES = { string = "SET", hash = "HSET", set = "SADD", zset = "ZADD" }

--- Whether a key is not copied as it is: meta comes last; manifest and sources are written by loaders; sleepers of the
--- old namespace do not sleep in the new one, and nobody there has read its events.
local function is_apart(key)
  return key == keys.META or key == keys.MANIFEST or key == keys.SCRIPTS or key == keys.IMPORT or key == keys.SLEEPERS
    or key == keys.EVENTS or key:sub(1, #keys.ASLEEP) == keys.ASLEEP or key:sub(1, #keys.WAKE) == keys.WAKE
end

local function key_of(suffix)
  return KEYS[1] .. ":" .. suffix
end

local function is_text(value, pattern)
  return type(value) == "string" and (not pattern or value:find(pattern) ~= nil)
end

-- Export -------------------------------------------------------------------------------------------------------------

--- The namespace's own key for a copy: without sleepers, and with everything due.
local function meta_record()
  local raw = call("GET", keys.META)
  local _, _, flags, _, version, added, secret = struct.unpack(meta.FORMAT, raw)
  return struct.pack(meta.FORMAT, meta.SCHEMA, 0, flags, 0, version, added, secret)
    .. raw:sub(meta.SETTINGS_OFFSET + 1)
end

---@return table? position {c copy, s cursor of SCAN, "" behind the last, k keys found and not yet written, p cursor in
--- the first of them}; nil if the cursor is invalid
function M.position(cursor)
  if cursor == "" then
    local digest = redis.sha1hex(string.format("%.0f ", meta.state[meta.NOW_MS]) .. (call("GET", keys.SEQ) or ""))
    return { c = digest:sub(1, 16), s = "0", k = {}, is_new = true }
  end
  local at = check.map(check.from_hex(cursor) or "")
  local is_valid = at and is_text(at.c, "^%x+$") and is_text(at.s, "^%d*$") and #at.s <= 20
    and (at.p == nil or is_text(at.p, "^%d+$")) and check.is_list(at.k, 0, 5000)
  for _, suffix in ipairs(is_valid and at.k or {}) do
    is_valid = is_valid and is_text(suffix)
  end
  return is_valid and at or nil
end

--- The next record of a key.
---@return string? record nil if the key was removed, or has nothing on this page
---@return number elements
local function key_record(at, suffix)
  local key = key_of(suffix)
  local kind, content = call("TYPE", key).ok, {}
  if SCANS[kind] then
    local page = call(SCANS[kind], key, at.p or "0", "COUNT", PAGE)
    at.p, content = page[1] ~= "0" and page[1] or nil, page[2]
  else
    at.p, content[1] = nil, kind == "string" and call("GET", key) or nil
  end
  return content[1] and pack({ "key", suffix, kind, math.max(call("PTTL", key), 0), content }) or nil, #content
end

--- Looks for more keys, by SCAN, so that none can be missed.
local function scan(at)
  -- SCAN's pattern: a namespace may have special characters.
  local pattern = KEYS[1]:gsub("[%*%?%[%]%^%\\]", "\\%0") .. ":*"
  local page = call("SCAN", at.s, "MATCH", pattern, "COUNT", SCAN_COUNT)
  at.s = page[1] ~= "0" and page[1] or ""
  for _, key in ipairs(page[2]) do
    if not is_apart(key) then
      at.k[#at.k + 1] = key:sub(#KEYS[1] + 2)
    end
  end
end

---@param at table position
---@param count number records at most
---@return table reply {cursor, record, ...}
function M.page(at, count)
  local reply, bytes, elements, scans, first = { "" }, 0, 0, 0, 1
  if at.is_new then
    reply[2] = pack({ "begin", meta.SCHEMA, at.c })
  end
  while #reply <= count and bytes < MOST_BYTES and elements < MOST_ELEMENTS do
    if at.k[first] then
      local record, size = key_record(at, at.k[first])
      reply[#reply + 1] = record
      bytes, elements = bytes + #(record or ""), elements + math.max(size, 1)
      first = at.p and first or first + 1
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
  reply[1] = check.to_hex(pack({ c = at.c, s = at.s, k = { unpack(at.k, first) }, p = at.p }))
  return reply
end

-- Import: all is checked before the first write, so that there is nothing that Redis could refuse ---------------------

-- The last call may be repeated for so long.
local REMEMBERED_S = 60
local MOST_TTL_MS = 1e14
local CHUNK = 4000
local MOST_TEXTS = 20000

--- Whether Redis accepts a text as a score.
local function is_score(text)
  local number = text:find("^[%d%.eE%+%-]+$") and tonumber(text)
  return text == "inf" or text == "-inf"
    or number and number > -math.huge and number < math.huge and (number ~= 0 or text == "0" or text == "-0")
end

local CHECKS = {
  key = function(record)
    local _, suffix, kind, ttl_ms, content = unpack(record, 1, 5)
    local width = is_text(kind) and WIDTH[kind]
    local is_right = width and is_text(suffix) and suffix ~= "" and #suffix < 4096 and not is_apart(key_of(suffix))
      and check.is_integer(ttl_ms, 0, MOST_TTL_MS) and check.is_list(content, 1, MOST_TEXTS) and #content % width == 0
      and (kind ~= "string" or #content == 1)
    for i, text in ipairs(is_right and content or {}) do
      is_right = is_right and is_text(text) and (kind ~= "zset" or i % 2 == 1 or is_score(text))
    end
    return is_right
  end,
  begin = function(record)
    return check.is_integer(record[2], 0, 65535) and is_text(record[3]) and #record[3] == 16
  end,
  ["end"] = function(record)
    return is_text(record[2]) and is_text(record[3]) and #record[3] == meta.SETTINGS_OFFSET + settingspec.BYTES
  end,
}

--- Parses records, which must be in order; refuses the call if one is wrong.
---@return table records
function M.read(blobs)
  local records = {}
  for i, blob in ipairs(blobs) do
    local path, record = "INVALID records[" .. i - 1 .. "]: expected ", check.map(blob)
    local test = record and CHECKS[record[1]]
    check.refuse((not test or not test(record)) and path .. "a record as export gave it")
    local schema = record[1] == "begin" and record[2] or record[1] == "end" and struct.unpack(">I2", record[3])
    check.refuse(schema and schema ~= meta.SCHEMA and "VERSION the export has schema " .. schema
      .. ", these scripts use " .. meta.SCHEMA .. ": use scripts of that version")
    check.refuse((record[1] == "begin" and i > 1 or record[1] == "end" and i < #blobs)
      and path .. "the records in order")
    records[i] = record
  end
  return records
end

--- Whether this call completed the import already. Refuses it if these records may not be imported now.
---@return boolean is_repeated
function M.is_repeated(records)
  local noted, first, last = call("GET", keys.IMPORT), records[1], records[#records]
  if call("EXISTS", keys.META) == 1 then
    check.refuse((last[1] ~= "end" or noted ~= "done " .. last[2])
      and "CONFLICT namespace " .. KEYS[1] .. " is set up already: import into a new one")
    return true
  end
  local copy = noted or first[3]
  if first[1] == "begin" then
    check.refuse(not noted and call("EXISTS", keys.SEQ, keys.QUEUE_NAMES, keys.PATTERNS, keys.DUE) > 0
      and "CONFLICT namespace " .. KEYS[1] .. " holds keys, although it is not set up: remove them first")
    check.refuse(copy ~= first[3] and "CONFLICT another import into namespace " .. KEYS[1]
      .. " has begun: complete it, or remove its keys")
  end
  check.refuse(first[1] ~= "begin" and not noted
    and "INVALID records[0]: no import has begun: start with the first record")
  check.refuse(last[1] == "end" and last[2] ~= copy
    and "INVALID records[" .. #records - 1 .. "]: the record is of another export")
  local kinds = {}
  for i, record in ipairs(records) do
    local _, suffix, kind = unpack(record)
    if record[1] == "key" then
      kinds[suffix] = kinds[suffix] or call("TYPE", key_of(suffix)).ok
      check.refuse(kinds[suffix] ~= "none" and kinds[suffix] ~= kind and "INVALID records[" .. i - 1
        .. "]: the key is a " .. kind .. ", and there is a " .. kinds[suffix] .. " of its name")
      kinds[suffix] = kind
    end
  end
  return false
end

local function write_key(record)
  local _, suffix, kind, ttl_ms, content = unpack(record)
  local key = key_of(suffix)
  for i = 1, kind == "zset" and #content or 0, 2 do
    content[i], content[i + 1] = content[i + 1], content[i]
  end
  for first = 1, #content, CHUNK do
    call(WRITES[kind], key, unpack(content, first, math.min(first + CHUNK - 1, #content)))
  end
  if ttl_ms > 0 then
    call("PEXPIRE", key, string.format("%.0f", ttl_ms))
  end
end

function M.write(records)
  for _, record in ipairs(records) do
    if record[1] == "begin" then
      call("SET", keys.IMPORT, record[3])
    elseif record[1] == "end" then
      call("SET", keys.META, record[3])
      call("SET", keys.IMPORT, "done " .. record[2], "EX", REMEMBERED_S)
    else
      write_key(record)
    end
  end
end

return M
