-- Request tokens: what was answered, so that a call sent twice has one effect.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"

local M = {}

M.TOKEN = "text of 1 to 200 bytes"

function M.is_token(value)
  return type(value) == "string" and #value > 0 and #value <= 200
end

---@cold
---@param operation string
---@return table? remembered
function M.recall(operation, token)
  local raw = redis.call("GET", keys.REQUEST .. operation .. ":" .. token)
  if raw then
    local expires_ms, remembered = cmsgpack.unpack(raw)
    -- Redis removes the key by its own clock; what counts is ours.
    return expires_ms > meta.state[meta.NOW_MS] and remembered or nil
  end
end

---@cold
---@param remembered table
function M.remember(operation, token, remembered)
  local ttl_ms = settings.at(settings.REQUEST_TTL) * 1000
  redis.call("SET", keys.REQUEST .. operation .. ":" .. token,
    cmsgpack.pack(meta.state[meta.NOW_MS] + ttl_ms, remembered), "PX", string.format("%.0f", ttl_ms))
end

return M
