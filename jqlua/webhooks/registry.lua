-- Webhooks: URLs to notify of the ends of jobs. All are in one string, so that a call that ends jobs needs one read;
-- signing secrets are apart.
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local memory = require "jqlua.base.memory"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

-- Every end is matched against each of them.
M.MOST = 20
M.MOST_BYTES = 16384
-- A webhook that matches no jobs: its secrets sign what jobs request by `notify`.
M.OWN = "notify"

---@kept
-- Decoded webhooks, by their bytes.
local known = {}

-- [1]: the webhooks of this call.
local open = {}

--- All of them, in order of id.
---@return table[] each {i id, u url, g matcher as given, m matcher, o states of ends that it notifies of},
--- read-only
function M.all()
  if not open[1] then
    local raw = call("GET", keys.WEBHOOKS) or ""
    open[1] = known[raw] or memory.keep(known, raw, raw == "" and {} or cmsgpack.unpack(raw))
  end
  return open[1]
end

---@return table? webhook
function M.find(id)
  for _, hook in ipairs(M.all()) do
    if hook.i == id then
      return hook
    end
  end
end

--- All but the one of this id.
local function others(id)
  local left = {}
  for _, hook in ipairs(M.all()) do
    if hook.i ~= id then
      left[#left + 1] = hook
    end
  end
  return left
end

local function save(list)
  open[1] = list
  if list[1] then
    call("SET", keys.WEBHOOKS, cmsgpack.pack(list))
  else
    call("DEL", keys.WEBHOOKS)
  end
  if meta.has(meta.HAS_WEBHOOKS) ~= (list[1] ~= nil) then
    meta.save_flags(meta.state[meta.FLAGS] + (list[1] and 1 or -1) * meta.HAS_WEBHOOKS)
  end
end

--- Adds a webhook, or replaces the one of its id. Without secrets, the present ones stay.
---@param hook table
---@param secrets? string[]
---@return string? problem
function M.put(hook, secrets)
  local list = others(hook.i)
  list[#list + 1] = hook
  if #list > M.MOST then
    return "FULL id: cannot create " .. check.show(hook.i) .. ": there are " .. M.MOST .. " webhooks, the limit"
  elseif #cmsgpack.pack(list) > M.MOST_BYTES then
    return "FULL match: the matchers of all webhooks together may have at most " .. M.MOST_BYTES .. " bytes"
  end
  table.sort(list, function(a, b)
    return a.i < b.i
  end)
  save(list)
  if secrets then
    call("HSET", keys.WEBHOOK_SECRETS, hook.i, table.concat(secrets, " "))
  end
end

function M.delete(id)
  save(others(id))
  call("HDEL", keys.WEBHOOK_SECRETS, id)
end

---@return string secrets with blanks between, or ""
function M.secrets(id)
  return call("HGET", keys.WEBHOOK_SECRETS, id) or ""
end

--- A webhook's document.
---@param is_told boolean whether with secrets
---@return string document
function M.document(hook, is_told)
  local secrets, list = M.secrets(hook.i), {}
  for secret in secrets:gmatch("%S+") do
    list[#list + 1] = secret
  end
  local parts = { cmsgpack.pack("id", hook.i) }
  if hook.u then
    local ends = {}
    for letter, name in pairs({ d = "done", e = "error", c = "cancelled", n = "skipped" }) do
      ends[#ends + 1] = hook.o:find(letter, 1, true) and name or nil
    end
    table.sort(ends)
    parts[2] = cmsgpack.pack("url", hook.u)
    parts[3] = cmsgpack.pack("match") .. hook.g -- as received
    parts[4] = cmsgpack.pack("on", ends)
  end
  parts[#parts + 1] = is_told and cmsgpack.pack("secrets", list) or cmsgpack.pack("secrets", #list)
  return string.char(128 + #parts) .. table.concat(parts)
end

return M
