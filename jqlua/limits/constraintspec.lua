-- Parses and checks constraints.
local fields = require "jqlua.base.fields"
local jobpath = require "jqlua.values.jobpath"
local check = require "jqlua.base.check"
local matcherspec = require "jqlua.limits.matcherspec"
local partition = require "jqlua.base.partition"

local M = {}

local MOST_PATHS = 4
local RATE = {
  limit = { "integer", 1, 1e7, required = true }, period = { "seconds", 0.001, 31536000, required = true },
}

---@return table paths
local function parse_by(by)
  if type(by) == "string" then
    return { jobpath.parse(by, "by") }
  end
  check.refuse(not check.is_list(by, 1, MOST_PATHS)
    and check.problem("by", "a path, or a list of 1 to " .. MOST_PATHS .. " paths", by))
  local paths = {}
  for i, text in ipairs(by) do
    paths[i] = jobpath.parse(text, "by[" .. i - 1 .. "]")
  end
  return paths
end

--- Has a partition allow its part of what all together may.
local function take_share(new)
  new.tc, new.tl = new.c, new.l
  new.c, new.l = new.c and partition.share(new.c), new.l and partition.share(new.l)
  local short = new.c == 0 and "concurrency" or new.l == 0 and "rate.limit"
  check.refuse(short and string.format("INVALID %s: expected at least %d, one for each partition; or have match name "
    .. "queues whose route is in by, so that each partition has its keys alone", short, (partition.of(KEYS[1]))))
end

--- Parses the call's spec and the matcher behind it.
---@return table new definition, without its number (module limits.constraints)
function M.parse(spec)
  local rate = spec.rate
  if rate ~= nil then
    fields.check(rate, RATE, "rate")
  end
  check.refuse(not spec.concurrency and not rate
    and "INVALID concurrency: expected concurrency, rate or both, got neither")
  rate = rate or {}
  local new = {
    i = spec.id, c = spec.concurrency, l = rate.limit, p = rate.period, g = ARGV[2], bg = spec.by,
    b = spec.by ~= nil and parse_by(spec.by) or nil, d = spec.declared,
  }
  if spec.shared then
    take_share(new)
  end
  new.m = matcherspec.compile(ARGV[2])
  return new
end

return M
