-- Marks: named times, such as a deploy. A sorted set whose members are time, text, a 0 byte and actor, so that they are
-- in order of time.
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local page = require "jqlua.find.page"

local M = {}

local call = redis.call

local DIGITS = 14
local MOST = 1000
local KEPT_MS = 400 * 86400000 -- like statistics by day
-- A mark that is repeated, or set by each of many hosts, is one.
local SAME_MS = 60000
local LOOKED_AT = 100

local function moment(ms)
  return string.format("%014x", ms)
end

local function document(member)
  local zero = member:find("\0", 1, true)
  return cmsgpack.pack({
    time_ms = tonumber(member:sub(1, DIGITS), 16), text = member:sub(DIGITS + 1, zero - 1),
    actor = member:sub(zero + 1),
  })
end

--- The newest mark with this text in a period.
---@return string? member
local function find(text, from_ms, to_ms)
  local members = call("ZRANGE", keys.MARKS, "(" .. moment(to_ms + 1), "[" .. moment(from_ms), "BYLEX", "REV", "LIMIT",
    0, LOOKED_AT)
  for _, member in ipairs(members) do
    if member:sub(DIGITS + 1, member:find("\0", 1, true) - 1) == text then
      return member
    end
  end
end

--- Sets a mark, unless it exists.
---@param spec table {text, time_ms?, actor?}, checked
---@return string document
---@return boolean is_new
function M.set(spec)
  local now = meta.state[meta.NOW_MS]
  local time_ms = spec.time_ms or now
  local known = find(spec.text, spec.time_ms or math.max(0, now - SAME_MS), time_ms)
  if known then
    return document(known), false
  end
  local member = moment(time_ms) .. spec.text .. "\0" .. (spec.actor or "")
  call("ZADD", keys.MARKS, 0, member)
  local old = call("ZRANGE", keys.MARKS, "-", "(" .. moment(math.max(0, now - KEPT_MS)), "BYLEX", "LIMIT", 0, LOOKED_AT)
  if old[1] then
    call("ZREM", keys.MARKS, unpack(old))
  end
  local over = call("ZCARD", keys.MARKS) - MOST
  if over > 0 then
    call("ZPOPMIN", keys.MARKS, string.format("%.0f", over))
  end
  return document(member), true
end

--- A page, newest first.
---@return table reply {cursor, document, ...}
function M.page(spec)
  local cursor = spec.cursor or ""
  check.refuse(cursor ~= "" and not cursor:find("^" .. ("%x"):rep(DIGITS))
    and check.problem("cursor", check.CURSOR, cursor))
  local first = math.max(math.ceil(spec.from_ms or 0), meta.state[meta.NOW_MS] - KEPT_MS, 0)
  local high = spec.to_ms and "(" .. moment(math.ceil(spec.to_ms)) or "+"
  if cursor ~= "" and (not spec.to_ms or tonumber(cursor:sub(1, DIGITS), 16) < spec.to_ms) then
    high = "(" .. cursor
  end
  local reply = page.newest(keys.MARKS, high, "[" .. moment(first), spec.count, document)
  reply[1] = reply[1]:match("^%Z*")
  return reply
end

return M
