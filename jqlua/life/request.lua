-- Request tokens: replies are remembered, so that a call sent twice has one effect.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"

local M = {}

M.TOKEN = "text of 1 to 200 bytes"

function M.is_token(value)
  return type(value) == "string" and #value > 0 and #value <= 200
end

local PLACE_SIZE = 22
M.PLACE = "22 hexadecimal digits, eight of a priority and those of an id"

function M.is_place(value)
  return type(value) == "string" and #value == PLACE_SIZE and not string.find(value, "[^0-9a-f]")
end

-- As JQ's clients write it: the last field of a spec, 16 bytes long.
local TAIL = "\167request\176"
local SIZE = 16
-- Before it a position in the order of jobs.
local PLACE = "\166before\182"
local PLACE_HEAD = 182

--- The request differs in each call, and so does `before`, while the rest of a spec stays the same: parsed specs are
--- remembered without them.
---@param blob string spec
---@return string rest the blob without the request, if that is its end, and the place in front of it
---@return string? token
---@return string? before
function M.split(blob)
  if blob:sub(-#TAIL - SIZE, -SIZE - 1) ~= TAIL then
    return blob
  end
  local rest, token = blob:sub(1, -#TAIL - SIZE - 1), blob:sub(-SIZE)
  local before = rest:byte(-PLACE_SIZE - 1) == PLACE_HEAD and rest:sub(-PLACE_SIZE)
  if not M.is_place(before) or rest:sub(-#PLACE - PLACE_SIZE, -PLACE_SIZE - 1) ~= PLACE then
    return rest, token
  end
  return rest:sub(1, -#PLACE - PLACE_SIZE - 1), token, before
end

---@param operation string
---@return any remembered nil if there is none
function M.recall(operation, token)
  local raw = redis.call("GET", keys.REQUEST .. operation .. ":" .. token)
  if raw then
    local expires_ms, remembered = cmsgpack.unpack(raw)
    -- Redis expires the key by its own clock; only meta's counts.
    return expires_ms > meta.state[meta.NOW_MS] and remembered or nil
  end
end

---@param remembered any
function M.remember(operation, token, remembered)
  local ttl_ms = settings.at(settings.REQUEST_TTL) * 1000
  redis.call("SET", keys.REQUEST .. operation .. ":" .. token,
    cmsgpack.pack(meta.state[meta.NOW_MS] + ttl_ms, remembered), "PX", string.format("%.0f", ttl_ms))
end

return M
