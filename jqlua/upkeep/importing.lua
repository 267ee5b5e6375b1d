-- Imports records of an export into a namespace that is not set up (module upkeep.copying). All is checked before the
-- first write: a record of an export has nothing that Redis could refuse.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local copying = require "jqlua.upkeep.copying"
local settingspec = require "jqlua.settings.settingspec"

local M = {}

local call = redis.call

-- The last call may be repeated for so long.
local REMEMBERED_S = 60
local MOST_TTL_MS = 1e14
local CHUNK = 4000
local MOST_TEXTS = 20000

local WHAT = "a record as export gave it"

-- How many texts an element has.
local WIDTH = { string = 1, list = 1, set = 1, hash = 2, zset = 2 }

local function is_text(value)
  return type(value) == "string"
end

--- Whether Redis accepts a text as a score.
local function is_score(text)
  local number = string.find(text, "^[%d%.eE%+%-]+$") and tonumber(text)
  return text == "inf" or text == "-inf"
    or number and number > -math.huge and number < math.huge and (number ~= 0 or text == "0" or text == "-0")
end

local function is_content(kind, content)
  local is_right = check.is_list(content, 1, MOST_TEXTS) and #content % WIDTH[kind] == 0
    and (kind ~= "string" or #content == 1)
  for i, text in ipairs(is_right and content or {}) do
    is_right = is_right and is_text(text) and (kind ~= "zset" or i % 2 == 1 or is_score(text))
  end
  return is_right
end

local function is_key(record)
  local _, suffix, kind, ttl_ms, at, content = unpack(record, 1, 6)
  return is_text(suffix) and suffix ~= "" and #suffix < 4096 and not copying.is_apart(copying.key(suffix))
    and is_text(kind) and WIDTH[kind] ~= nil and check.is_integer(ttl_ms, 0, MOST_TTL_MS)
    and check.is_integer(at, 0, 1e15) and is_content(kind, content)
end

local CHECKS = {
  key = is_key,
  begin = function(record)
    return check.is_integer(record[2], 0, 65535) and is_text(record[3]) and #record[3] == 16
  end,
  ["end"] = function(record)
    return is_text(record[2]) and is_text(record[3])
      and #record[3] == meta.SETTINGS_OFFSET + settingspec.BYTES
  end,
}

---@return table record
local function decode(i, blob)
  local path = "records[" .. i - 1 .. "]"
  local ok, rest, record = pcall(cmsgpack.unpack_one, blob)
  local test = ok and rest == -1 and type(record) == "table" and CHECKS[record[1]]
  check.refuse((not test or not test(record)) and "INVALID " .. path .. ": expected " .. WHAT)
  local schema = record[1] == "begin" and record[2] or record[1] == "end" and struct.unpack(">I2", record[3])
  check.refuse(schema and schema ~= meta.SCHEMA and "VERSION the export has schema " .. schema
    .. ", these scripts use " .. meta.SCHEMA .. ": use scripts of that version")
  return record
end

--- Checks a record against existing keys.
local function check_key(i, record, known)
  local key = copying.key(record[2])
  local existing = known[key]
  if not existing then
    existing = { call("TYPE", key).ok }
    existing[2] = existing[1] == "list" and call("LLEN", key) or 0
    known[key] = existing
  end
  local path = "INVALID records[" .. i - 1 .. "]: "
  check.refuse(existing[1] ~= "none" and existing[1] ~= record[3]
    and path .. "the key is a " .. record[3] .. ", and there is a " .. existing[1] .. " of its name")
  check.refuse(record[3] == "list" and record[5] > existing[2]
    and path .. "a record before it is missing: import all, in order")
  existing[1] = record[3]
  existing[2] = math.max(existing[2], record[5] + #record[6])
end

---@return table records
function M.read(blobs)
  local records = {}
  for i, blob in ipairs(blobs) do
    records[i] = decode(i, blob)
    check.refuse((records[i][1] == "begin" and i > 1 or records[i][1] == "end" and i < #blobs)
      and "INVALID records[" .. i - 1 .. "]: expected the records in order")
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
  local known = {}
  for i, record in ipairs(records) do
    if record[1] == "key" then
      check_key(i, record, known)
    end
  end
  return false
end

local function send(command, key, content)
  for first = 1, #content, CHUNK do
    call(command, key, unpack(content, first, math.min(first + CHUNK - 1, #content)))
  end
end

-- Of a zset, members and scores change places.
local COMMANDS = { string = "SET", hash = "HSET", set = "SADD", zset = "ZADD" }

local function write_key(record)
  local _, suffix, kind, ttl_ms, at, content = unpack(record, 1, 6)
  local key = copying.key(suffix)
  if kind == "list" then
    for i = call("LLEN", key) - at + 1, #content do -- the others were written by an earlier call
      call("RPUSH", key, content[i])
    end
  else
    for i = 1, kind == "zset" and #content or 0, 2 do
      content[i], content[i + 1] = content[i + 1], content[i]
    end
    send(COMMANDS[kind], key, content)
  end
  if ttl_ms > 0 then
    call("PEXPIRE", key, string.format("%.0f", ttl_ms))
  end
end

---@return number keys
function M.count(records)
  local count = 0
  for _, record in ipairs(records) do
    count = count + (record[1] == "key" and record[5] == 0 and 1 or 0)
  end
  return count
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
