-- Webhooks: URLs to notify of the ends of jobs. All are in one string, so that a call that ends jobs needs one read;
-- signing secrets are apart.
local check = require "jqlua.base.check"
local fields = require "jqlua.base.fields"
local matcherspec = require "jqlua.limits.matcherspec"
local documents = require "jqlua.values.documents"
local keys = require "jqlua.base.keys"
local memory = require "jqlua.base.memory"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

-- Every end is matched against each of them.
local MOST = 20
local MOST_BYTES = 16384
local ALL_JOBS = cmsgpack.pack({ name = "*" })
-- A webhook that matches no jobs: its secrets sign what jobs request by `notify`.
local OWN = "notify"

-- Decoded webhooks, by their bytes.
local known = KEPT

-- [1]: the webhooks of this call.
local open = {}

--- All of them, in order of id.
---@return table[] each {i id, u url, g matcher as given, m matcher, o names of the ends that it notifies of},
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

--- Parses the call's spec and the matcher behind it.
---@param spec table
---@return table hook as of all
function M.parse(spec)
  local match = ARGV[2] or ""
  if spec.id == OWN then
    local why = OWN .. " takes only secrets, which sign what jobs notify"
    fields.refuse(spec, "url on", why)
    check.refuse(match ~= "" and "INVALID match: " .. why)
    return { i = spec.id, o = "" }
  end
  check.refuse(not spec.url and check.problem("url", check.URL, nil))
  match = match ~= "" and match or ALL_JOBS
  local ends = table.concat(spec.on or { "cancelled", "done", "error", "skipped" }, " ")
  return { i = spec.id, u = spec.url, g = match, o = ends, m = matcherspec.compile(match) }
end

--- Adds a webhook, or replaces the one of its id. Without secrets, the present ones stay.
---@param hook table
---@param secrets? string[]
function M.put(hook, secrets)
  local list = others(hook.i)
  list[#list + 1] = hook
  check.refuse(#list > MOST
    and "FULL id: cannot create " .. check.show(hook.i) .. ": there are " .. MOST .. " webhooks, the limit")
  check.refuse(#cmsgpack.pack(list) > MOST_BYTES
    and "FULL match: the matchers of all webhooks together may have at most " .. MOST_BYTES .. " bytes")
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

--- A webhook's document.
---@param is_told boolean whether with secrets
---@return string document
function M.document(hook, is_told)
  local secrets, ends = {}, hook.u and {}
  for secret in (call("HGET", keys.WEBHOOK_SECRETS, hook.i) or ""):gmatch("%S+") do
    secrets[#secrets + 1] = secret
  end
  for name in hook.o:gmatch("%S+") do
    ends[#ends + 1] = name
  end
  table.sort(ends or {})
  local shown = { id = hook.i, url = hook.u, on = ends, secrets = is_told and secrets or #secrets }
  return documents.pack(shown, { match = hook.g }) -- as received
end

return M
