-- Imports records of an export into a namespace that is not set up (module upkeep.copying). All is checked before the
-- first write: a record of an export has nothing that Redis could refuse.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local copying = require "jqlua.upkeep.copying"
local settings = require "jqlua.settings.settings"

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
  if not check.is_list(content, 1, MOST_TEXTS) or #content % WIDTH[kind] ~= 0 or kind == "string" and #content ~= 1 then
    return false
  end
  for i, text in ipairs(content) do
    if not is_text(text) or kind == "zset" and i % 2 == 0 and not is_score(text) then
      return false
    end
  end
  return true
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
      and #record[3] == meta.SETTINGS_OFFSET + #settings.ALL * settings.DOUBLE
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

--- Whether this same call completed the import already. Refuses the call if these records may not be imported now.
---@param digest string of the call's arguments
---@return boolean is_repeated
function M.is_repeated(records, digest)
  local noted = call("GET", keys.IMPORT)
  if call("EXISTS", keys.META) == 1 then
    check.refuse(noted ~= "done " .. digest
      and "CONFLICT namespace " .. KEYS[1] .. " is set up already: import into a new one")
    return true
  end
  local first, last = records[1], records[#records]
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

local WRITE = {
  string = function(key, content)
    call("SET", key, content[1])
  end,
  hash = function(key, content)
    send("HSET", key, content)
  end,
  set = function(key, content)
    send("SADD", key, content)
  end,
  list = function(key, content, at)
    local written = call("LLEN", key) - at -- elements written by an earlier call
    for i = written + 1, #content do
      call("RPUSH", key, content[i])
    end
  end,
  zset = function(key, content)
    local turned = {}
    for i = 1, #content, 2 do
      turned[i], turned[i + 1] = content[i + 1], content[i]
    end
    send("ZADD", key, turned)
  end,
}

---@return number keys
function M.count(records)
  local count = 0
  for _, record in ipairs(records) do
    count = count + (record[1] == "key" and record[5] == 0 and 1 or 0)
  end
  return count
end

---@param digest string of the call's arguments
function M.write(records, digest)
  for _, record in ipairs(records) do
    if record[1] == "begin" then
      call("SET", keys.IMPORT, record[3])
    elseif record[1] == "end" then
      call("SET", keys.META, record[3])
      call("SET", keys.IMPORT, "done " .. digest, "EX", REMEMBERED_S)
    else
      local key = copying.key(record[2])
      WRITE[record[3]](key, record[6], record[5])
      if record[4] > 0 then
        call("PEXPIRE", key, string.format("%.0f", record[4]))
      end
    end
  end
end

return M
