-- Audit of webhooks: calls that end jobs know of them, secrets belong to existing ones.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local registry = require "jqlua.webhooks.registry"

local M = {}

function M.check(problems)
  if meta.has(meta.HAS_WEBHOOKS) ~= (registry.all()[1] ~= nil) then
    problems[#problems + 1] = "meta has a wrong flag of webhooks"
  end
  for _, id in ipairs(redis.call("HKEYS", keys.WEBHOOK_SECRETS)) do
    if not registry.find(id) then
      problems[#problems + 1] = "secrets are of webhook " .. id .. ", which is not there"
    end
  end
end

return M
