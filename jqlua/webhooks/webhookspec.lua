-- Parses and checks webhooks.
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local matcher = require "jqlua.limits.matcher"
local registry = require "jqlua.webhooks.registry"
local workers = require "jqlua.pick.workers"

local M = {}

local FIELDS = "id url on secrets actor"
local ENDS = { done = "d", error = "e", cancelled = "c", skipped = "n" }

---@return string? letters
---@return string? problem
local function parse_on(on)
  if on == nil then
    return "decn"
  elseif not check.is_list(on, 1, 4) then
    return nil, check.problem("on", "a list of done, error, cancelled, skipped", on)
  end
  local problem = check.distinct(on, "on", function(name)
    return type(name) == "string" and ENDS[name] ~= nil
  end, "done, error, cancelled or skipped")
  local letters = ""
  for _, name in ipairs(problem and {} or on) do
    letters = letters .. ENDS[name]
  end
  return letters, problem
end

--- Parses the call's arguments: a spec and a matcher.
---@return table hook as of registry.all
---@return table spec
function M.parse()
  local spec = (#ARGV == 1 or #ARGV == 2) and check.map(ARGV[1])
  check.refuse(not spec and check.not_one_spec(#ARGV == 2))
  check.refuse(check.unknown_field(spec, FIELDS) or arguments.check_actor(spec))
  check.refuse(not check.is_name(spec.id) and check.problem("id", check.NAME, spec.id))
  check.refuse(spec.secrets ~= nil and workers.check_secrets(spec.secrets))
  local match = ARGV[2] or ""
  if spec.id == registry.OWN then
    if spec.url ~= nil or spec.on ~= nil or match ~= "" then
      local field = spec.url ~= nil and "url" or spec.on ~= nil and "on" or "match"
      check.refuse("INVALID " .. field .. ": " .. registry.OWN .. " takes only secrets, which sign what jobs notify")
    end
    return { i = spec.id, o = "" }, spec
  end
  check.refuse(not check.is_url(spec.url) and check.problem_of_url("url", spec.url))
  local hook = { i = spec.id, u = spec.url, g = match }
  local problem
  hook.o, problem = parse_on(spec.on)
  check.refuse(problem)
  hook.m, problem = matcher.compile(match)
  check.refuse(problem)
  return hook, spec
end

return M
