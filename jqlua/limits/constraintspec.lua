-- Parses and checks constraints.
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local matcher = require "jqlua.limits.matcher"
local meta = require "jqlua.base.meta"
local partition = require "jqlua.base.partition"

local M = {}

local FIELDS = "id by concurrency rate cost order expires_in declared shared actor"
local MOST_PATHS = 4

---@return table? paths
---@return string? problem
function M.parse_by(by)
  local list = by
  if type(by) == "string" then
    list = { by }
  elseif not check.is_list(by, 1, MOST_PATHS) then
    return nil, check.problem("by", "a path, or a list of 1 to " .. MOST_PATHS .. " paths", by)
  end
  local paths = {}
  for i, text in ipairs(list) do
    local problem
    paths[i], problem = matcher.parse_path(text, list == by and "by[" .. i - 1 .. "]" or "by")
    if problem then
      return nil, problem
    end
  end
  return paths
end

---@return string? problem
local function parse_rate(new, rate)
  if type(rate) ~= "table" then
    return check.problem("rate", "a map {limit, period, smooth?}", rate)
  end
  for field in pairs(rate) do
    if field ~= "limit" and field ~= "period" and field ~= "smooth" then
      return check.unknown("rate", field, "limit period smooth")
    end
  end
  if not check.is_integer(rate.limit, 1, 1e9) then
    return check.problem("rate.limit", "an integer from 1 to 10^9", rate.limit)
  elseif not check.is_number(rate.period, 0.001, 31536000) then
    return check.problem("rate.period", "seconds from 0.001 to 31536000", rate.period)
  elseif rate.smooth ~= nil and type(rate.smooth) ~= "boolean" then
    return check.problem("rate.smooth", "true or false", rate.smooth)
  end
  new.l, new.p, new.s = rate.limit, rate.period, rate.smooth
end

---@return string? problem
local function parse_cost(new, cost)
  if type(cost) == "string" then
    local problem
    new.k, problem = matcher.parse_path(cost, "cost", true)
    if problem then
      return problem
    end
  elseif check.is_number(cost, 0, 1e9) then
    new.k = cost
  else
    return check.problem("cost", "a number from 0 to 10^9, or a path into the argument", cost)
  end
  new.kg = cost
  if not new.l then
    return "INVALID cost: only a constraint with rate has it"
  end
end

--- Has a partition allow its part of what all together may.
---@return string? problem
local function take_share(new)
  new.tc, new.tl = new.c, new.l
  new.c, new.l = new.c and partition.share(new.c), new.l and partition.share(new.l)
  local short = new.c == 0 and "concurrency" or new.l == 0 and "rate.limit"
  if short then
    local count = partition.of(KEYS[1])
    return string.format("INVALID %s: expected at least %d, one for each partition; or have match name queues whose "
      .. "route is in by, so that each partition has its keys alone", short, count)
  end
end

--- Parses the call's arguments: a spec and a matcher.
---@return table new definition, without its number (module limits.constraints)
---@return table spec
function M.parse()
  check.refuse(#ARGV ~= 2 and "INVALID arguments: expected a spec and a matcher, got " .. #ARGV)
  local spec = check.map(ARGV[1])
  check.refuse(not spec and check.not_a_map("spec", ARGV[1]))
  check.refuse(check.unknown_field(spec, FIELDS) or arguments.check_actor(spec))
  check.refuse(not check.is_name(spec.id) and check.problem("id", check.NAME, spec.id))
  if spec.declared ~= nil and not check.is_name(spec.declared) then
    check.refuse(check.problem("declared", check.NAME, spec.declared))
  end
  local new = { i = spec.id, c = spec.concurrency, g = ARGV[2], bg = spec.by, d = spec.declared }
  if spec.concurrency ~= nil and not check.is_integer(spec.concurrency, 1, 1e9) then
    check.refuse(check.problem("concurrency", "an integer from 1 to 10^9", spec.concurrency))
  end
  check.refuse(spec.rate ~= nil and parse_rate(new, spec.rate) or spec.cost ~= nil and parse_cost(new, spec.cost))
  check.refuse(not new.c and not new.l and "INVALID concurrency: expected concurrency, rate or both, got neither")
  if spec.shared ~= nil and type(spec.shared) ~= "boolean" then
    check.refuse(check.problem("shared", "true or false", spec.shared))
  end
  check.refuse(spec.shared and take_share(new))
  local problem
  if spec.by ~= nil then
    new.b, problem = M.parse_by(spec.by)
    check.refuse(problem)
  end
  if spec.expires_in ~= nil then
    if not check.is_number(spec.expires_in, 0.001, 1e10) then
      check.refuse(check.problem("expires_in", "seconds from 0.001 to 10^10", spec.expires_in))
    end
    new.x = meta.state[meta.NOW_MS] + math.ceil(spec.expires_in * 1000)
  end
  if spec.order ~= nil then
    check.refuse(spec.order ~= "strict" and check.problem("order", '"strict"', spec.order))
    check.refuse(new.c ~= 1 and "INVALID order: strict needs concurrency 1")
    new.o = true
  end
  new.m, problem = matcher.compile(ARGV[2])
  check.refuse(problem)
  return new, spec
end

--- Whether two definitions count the same jobs under the same keys: then the keys' state stays, and only limits change.
function M.is_same_set(old, new)
  for _, field in ipairs({ "g", "p", "o" }) do
    if old[field] ~= new[field] then
      return false
    end
  end
  if (old.s or false) ~= (new.s or false) then
    return false
  end
  return cmsgpack.pack(old.bg, old.kg or 1) == cmsgpack.pack(new.bg, new.kg or 1)
end

return M
