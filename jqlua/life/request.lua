-- Request tokens: replies are remembered, so that a call sent twice has one effect.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"

local M = {}

M.TOKEN = "text of 1 to 200 bytes"

function M.is_token(value)
  return type(value) == "string" and #value > 0 and #value <= 200
end

-- As JQ's clients write it: the last field of a spec, 16 bytes long.
local TAIL = "\167request\176"
local SIZE = 16

--- The request differs in each call, while the rest of a spec stays the same: parsed specs are remembered without it.
---@param blob string spec
---@return string rest the blob without the request, if that is its end
---@return string? token
function M.split(blob)
  if blob:sub(-#TAIL - SIZE, -SIZE - 1) ~= TAIL then
    return blob
  end
  return blob:sub(1, -#TAIL - SIZE - 1), blob:sub(-SIZE)
end

---@param operation string
---@return string key of what is remembered
function M.key(operation, token)
  return keys.REQUEST .. operation .. ":" .. token
end

---@param raw? string|false what is remembered, if it was read already
---@return any remembered nil if there is none
function M.recall(operation, token, raw)
  if raw == nil then
    raw = redis.call("GET", M.key(operation, token))
  end
  if raw then
    local expires_ms, remembered = cmsgpack.unpack(raw)
    -- Redis expires the key by its own clock; only meta's counts.
    return expires_ms > meta.state[meta.NOW_MS] and remembered or nil
  end
end

---@param remembered any
function M.remember(operation, token, remembered)
  local ttl_ms = settings.at(settings.REQUEST_TTL) * 1000
  redis.call("SET", M.key(operation, token),
    cmsgpack.pack(meta.state[meta.NOW_MS] + ttl_ms, remembered), "PX", string.format("%.0f", ttl_ms))
end

return M
