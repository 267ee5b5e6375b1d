-- Checks of arguments. A failed check returns the text of the error reply.
local batch = require "jqlua.base.batch"
local msgpack = require "jqlua.base.msgpack"

local M = {}

--- Ends the call with an error reply, if there is a problem. Nothing may have been written. The build puts a frame
-- around each script that makes the reply of what is raised here.
---@param problem string|false|nil
function M.refuse(problem)
  if problem then
    local reply = redis.error_reply(problem)
    reply.is_refusal, reply.has_writes = true, not batch.is_empty() -- what is buffered must go
    error(reply, 0)
  end
end

--- One MessagePack map, and nothing behind it.
---@param blob string
---@return table? map nil when it is anything else
function M.map(blob)
  -- unpack_one gives -1 when the value is all there is.
  local ok, rest, value = pcall(cmsgpack.unpack_one, blob)
  if ok and rest == -1 and type(value) == "table" then
    -- It takes integers from 2^63 on for negative ones.
    if string.find(blob, "\207", 1, true) then
      value = select(2, cmsgpack.unpack_one(msgpack.readable(blob)))
    end
    return value
  end
end

---@param i integer where to begin
---@return integer? at of the first byte that is not UTF-8
local function first_odd(text, i)
  local n = #text
  while i <= n do
    local a, b, c, d = text:byte(i, i + 3)
    if a < 0x80 then
      i = i + 1
    elseif a >= 0xC2 and a < 0xE0 and b and b >= 0x80 and b < 0xC0 then
      i = i + 2
    elseif a >= 0xE0 and a < 0xF0 and c and b >= (a == 0xE0 and 0xA0 or 0x80)
      and b < (a == 0xED and 0xA0 or 0xC0) and c >= 0x80 and c < 0xC0 then
      i = i + 3
    elseif a >= 0xF0 and a < 0xF5 and d and b >= (a == 0xF0 and 0x90 or 0x80)
      and b < (a == 0xF4 and 0x90 or 0xC0) and c >= 0x80 and c < 0xC0 and d >= 0x80 and d < 0xC0 then
      i = i + 4
    else
      return i
    end
  end
end

local function is_utf8(text)
  return not first_odd(text, 1)
end

--- Text for people, such as an error's message: a report must not fail by its words. Bytes that are not UTF-8 become
--- `?`, and what is longer than most bytes is cut between two characters.
---@param text string
---@param most integer
function M.message(text, most)
  if #text > most then
    local size = most
    -- A byte that continues a character begins with the bits 10. A character has three of them at most.
    while size > most - 3 and string.find(text, "^[\128-\191]", size + 1) do
      size = size - 1
    end
    text = text:sub(1, size)
  end
  local parts, from = {}, 1
  local odd = first_odd(text, 1)
  while odd do
    parts[#parts + 1] = text:sub(from, odd - 1)
    from = odd + 1
    odd = first_odd(text, from)
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts, "?")
end

--- Names of jobs, queues, workers: 1 to 255 bytes of UTF-8 without control characters.
function M.is_name(value)
  return type(value) == "string" and #value > 0 and #value <= 255
    and (string.find(value, "^[\32-\126]*$") or not string.find(value, "[%z\1-\31\127]") and is_utf8(value))
end
M.NAME = "text of 1 to 255 bytes, valid UTF-8, no control characters"

--- Names of queues that are no patterns.
function M.is_queue(value)
  return M.is_name(value) and not string.find(value, "*", 1, true)
end
M.QUEUE = M.NAME .. ", no *"

--- Names of keys and of actors.
function M.is_short_name(value)
  return M.is_name(value) and #value <= 100
end
M.SHORT_NAME = "text of 1 to 100 bytes, valid UTF-8, no control characters"

--- Like a name, but of any length up to most, or empty.
---@param most number bytes
function M.is_text(value, most)
  return type(value) == "string" and #value <= most and not string.find(value, "[%z\1-\31\127]") and is_utf8(value)
end

--- A URL to send requests to: http or https, without user and fragment, at most 2000 bytes.
---@return boolean
function M.is_url(value)
  return M.is_text(value, 2000) and string.find(value, "^https?://[%w%[][^%s#]*$") ~= nil
    and not string.find(value, "^https?://[^/?]*@")
end
M.URL = "an http or https URL of at most 2000 bytes, without user and #"

---@return boolean # neither NaN nor -0, which prints as no other number does, nor outside low to high
function M.is_number(value, low, high)
  return type(value) == "number" and value >= low and value <= high and (value ~= 0 or 1 / value > 0)
end

---@return boolean
function M.is_integer(value, low, high)
  return M.is_number(value, low, high) and value % 1 == 0
end

--- Formats any value for an error message, shortened.
function M.show(value)
  local kind = type(value)
  if kind == "string" then
    local shown = value:sub(1, 40):gsub("[^\32-\126]", "?")
    return '"' .. shown .. '"' .. (#value > 40 and " (" .. #value .. " bytes)" or "")
  elseif kind == "number" and math.abs(value) >= 2 ^ 53 then
    return string.format("about %.6g", value) -- not the integer that came, but one beside it
  elseif kind == "number" then
    local short = string.format("%.15g", value)
    return tonumber(short) == value and short or string.format("%.17g", value)
  elseif kind == "table" then
    return next(value) == nil and "an empty list or map" or (value[1] ~= nil and "a list" or "a map")
  end
  return tostring(value)
end

--- A caller's key as part of an error's path, in which blanks and colons have a meaning.
---@param text string
---@return string
function M.part(text)
  return (M.show(text):sub(2, -2):gsub("[ :]", "?"))
end

---@param path string of the invalid argument
---@param expected string
---@return string problem
function M.problem(path, expected, value)
  if value == nil then
    return "INVALID " .. path .. ": expected " .. expected .. ", got nothing"
  end
  return "INVALID " .. path .. ": expected " .. expected .. ", got " .. M.show(value)
end

--- No such thing exists.
---@param kind string job, queue, ...
---@param name any shown unquoted if it is a valid name
---@return string problem
function M.missing(path, kind, name)
  return "NOTFOUND " .. path .. ": no such " .. kind .. ": " .. (M.is_name(name) and name or M.show(name))
end

function M.not_a_map(path, blob)
  if not blob then
    return "INVALID " .. path .. ": missing"
  end
  local ok, rest, value = pcall(cmsgpack.unpack_one, blob)
  if not ok then
    return "INVALID " .. path .. ": not MessagePack, or with bin, ext or too deep values: expected one map"
  elseif rest ~= -1 then
    return "INVALID " .. path .. ": expected one MessagePack map, got more bytes behind the first value"
  end
  return "INVALID " .. path .. ": expected one MessagePack map, got "
    .. (#blob == 0 and "no bytes" or M.show(value))
end

--- The call's only spec is missing or invalid.
---@param takes_more? boolean whether more arguments may follow
function M.not_one_spec(takes_more)
  if #ARGV ~= 1 and not (takes_more and #ARGV > 1) then
    return "INVALID spec: expected one argument, a MessagePack map, got " .. #ARGV .. " arguments"
  end
  return M.not_a_map("spec", ARGV[1])
end

--- Rejects a field, and names those that there are.
---@param path string of the map, "" for the call's own spec
---@param known string known names, separated by blanks
function M.unknown(path, field, known)
  if type(field) ~= "string" then
    return "INVALID " .. (path == "" and "spec" or path) .. ": expected a map with text as keys, got the key "
      .. M.show(field)
  end
  local shown = M.part(field)
  return "INVALID " .. (path == "" and shown or path .. "." .. shown) .. ": unknown field, expected one of "
    .. known:gsub(" ", ", ")
end

--- A list (not a map) of `low` to `high` values.
---@return boolean
function M.is_list(value, low, high)
  if type(value) ~= "table" then
    return false
  end
  local n = #value
  if n < low or n > high then
    return false
  end
  local count = 0
  for _ in pairs(value) do
    count = count + 1
  end
  return count == n
end

--- Cursors of bytes are shown as hexadecimal digits.
---@param bytes string
---@return string digits
function M.to_hex(bytes)
  return (bytes:gsub(".", function(byte)
    return string.format("%02x", byte:byte())
  end))
end

---@param digits string
---@return string? bytes nil if they are none
function M.from_hex(digits)
  if #digits % 2 ~= 0 or digits:find("[^0-9a-f]") then
    return nil
  end
  return (digits:gsub("..", function(pair)
    return string.char(tonumber(pair, 16))
  end))
end

---@return boolean
function M.is_id(value)
  return type(value) == "string" and (#value == 14 or #value == 16 and value:sub(15) ~= "00")
    and not string.find(value, "[^0-9a-f]")
end
M.CURSOR = "a cursor as the last reply gave it, or empty text"
M.ID = "a job id of 14 or 16 hexadecimal digits"

---@return boolean
function M.is_token(value)
  return type(value) == "string" and #value <= 23 and string.find(value, "^[1-9]%d*%-[0-9a-f]*$") ~= nil
end
M.TOKEN = "the token that came with the job, <attempt>-<digits>"

--- Whether a secret is valid by Standard Webhooks: 24 to 64 bytes.
---@return boolean
function M.is_secret(value)
  local digits, padding = string.match(type(value) == "string" and value or "", "^whsec_([%w+/]+)(=*)$")
  if not digits or (#digits + #padding) % 4 ~= 0 or #padding > 2 then
    return false
  end
  local bytes = (#digits + #padding) / 4 * 3 - #padding
  return bytes >= 24 and bytes <= 64
end
M.SECRET = "whsec_ and 24 to 64 bytes in base64"

return M
