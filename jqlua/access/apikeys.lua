-- Keys of the HTTP API. Servers check them; the record has their rights and a digest of the secret.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local sleepers = require "jqlua.workers.sleepers"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

M.MOST = 1000

---@return boolean
function M.is_id(id)
  return type(id) == "string" and #id == 12 and not id:find("[^0-9a-f]")
end
M.ID = "an id of 12 hexadecimal digits"

---@return table? api_key its document, with the digest
function M.load(id)
  local raw = call("HGET", keys.API_KEYS, id)
  return raw and cmsgpack.unpack(raw) or nil
end

--- Whether a key exists and has not expired.
---@return boolean
function M.lasts(id)
  local api_key = M.load(id)
  return api_key ~= nil and (not api_key.expires_ms or meta.state[meta.NOW_MS] < api_key.expires_ms)
end

---@return table api_key
function M.put(spec)
  local now = meta.state[meta.NOW_MS]
  local api_key = {
    id = spec.id, name = spec.name, digest = spec.digest, roles = spec.roles, queues = spec.queues, rate = spec.rate,
    created_ms = now, expires_ms = spec.ttl and now + math.ceil(spec.ttl * 1000),
  }
  call("HSET", keys.API_KEYS, spec.id, cmsgpack.pack(api_key))
  call("ZADD", keys.API_KEY_IDS, 0, spec.id)
  sleepers.wake_channel(workers.CHANNEL) -- for workers that are registered with it already
  return api_key
end

function M.delete(id)
  call("HDEL", keys.API_KEYS, id)
  call("HDEL", keys.API_KEY_USES, id)
  call("ZREM", keys.API_KEY_IDS, id)
end

--- Records that keys were used now.
---@return number count of those that exist
function M.touch(ids)
  local count, now = 0, string.format("%.0f", meta.state[meta.NOW_MS])
  for _, id in ipairs(ids) do
    if call("HEXISTS", keys.API_KEYS, id) == 1 then
      call("HSET", keys.API_KEY_USES, id, now)
      count = count + 1
    end
  end
  return count
end

---@param api_key table as load gives it
---@param has_digest? boolean for servers, which check keys
---@return string document
function M.document(api_key, has_digest)
  api_key.used_ms = tonumber(call("HGET", keys.API_KEY_USES, api_key.id) or nil)
  api_key.digest = has_digest and api_key.digest or nil
  return cmsgpack.pack(api_key)
end

return M
