-- Request tokens: replies are remembered, so that a call sent twice has one effect.
local keys = require "jqlua.base.keys"
local memory = require "jqlua.base.memory"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"

local M = {}

-- As JQ's clients write it: the last field of a spec, 16 bytes long.
local TAIL = "\167request\176"
local SIZE = 16

--- Parses a spec, unless a call before had the same but for its request, which differs in each.
---@param known table of memory.keep: specs by their bytes, or by those before their request
---@param blob string
---@param parse fun(blob: string): table refuses the call if the spec is wrong
---@return table call not to be changed; request: its token or false
---@return string|false token
function M.read(known, blob, parse)
  local call = known[blob]
  if call and not call.is_cut then
    return call, call.request
  end
  local rest, token = blob, nil
  if blob:sub(-#TAIL - SIZE, -SIZE - 1) == TAIL then
    rest, token = blob:sub(1, -#TAIL - SIZE - 1), blob:sub(-SIZE)
    call = known[rest]
  end
  if not token or not call or not call.is_cut then
    call = parse(blob)
    call.is_cut = token ~= nil and token == call.request
    memory.keep(known, call.is_cut and rest or blob, call)
  end
  return call, token or call.request
end

---@param operation string
---@return string key of what is remembered
local function key_of(operation, token)
  return keys.REQUEST .. operation .. ":" .. token
end

---@return any remembered nil if there is none
function M.recall(operation, token)
  local raw = redis.call("GET", key_of(operation, token))
  if raw then
    local expires_ms, remembered = cmsgpack.unpack(raw)
    -- Redis expires the key by its own clock; only meta's counts.
    return expires_ms > meta.state[meta.NOW_MS] and remembered or nil
  end
end

---@param remembered any
function M.remember(operation, token, remembered)
  local ttl_ms = settings.at(settings.REQUEST_TTL) * 1000
  redis.call("SET", key_of(operation, token),
    cmsgpack.pack(meta.state[meta.NOW_MS] + ttl_ms, remembered), "PX", string.format("%.0f", ttl_ms))
end

return M
