-- Parses and checks webhooks.
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local matcherspec = require "jqlua.limits.matcherspec"
local registry = require "jqlua.webhooks.registry"

local M = {}

local ENDS = { done = "d", error = "e", cancelled = "c", skipped = "n" }

--- Parses the call's spec and the matcher behind it.
---@param spec table
---@return table hook as of registry.all
function M.parse(spec)
  local match = ARGV[2] or ""
  if spec.id == registry.OWN then
    local why = registry.OWN .. " takes only secrets, which sign what jobs notify"
    fields.refuse(spec, "url on", why)
    check.refuse(match ~= "" and "INVALID match: " .. why)
    return { i = spec.id, o = "" }
  end
  check.refuse(not spec.url and check.problem("url", check.URL, nil))
  local letters = ""
  for _, name in ipairs(spec.on or { "done", "error", "cancelled", "skipped" }) do
    letters = letters .. ENDS[name]
  end
  return { i = spec.id, u = spec.url, g = match, o = letters, m = matcherspec.compile(match) }
end

return M
