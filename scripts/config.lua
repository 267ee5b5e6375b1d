-- Shows and changes a namespace's settings.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {set?: {name: value, ...}}
-- Reply  document of all settings
-- Errors INVALID set.name
-- Flags: drain
local arguments = require "jqlua.arguments"
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local due = require "jqlua.due"
local settings = require "jqlua.settings"
local transition = require "jqlua.transition"

local function problem_of(setting, value)
  local name, _, least, most, kind = setting[1], setting[2], setting[3], setting[4], setting[5]
  local path = "set." .. name
  if kind == "boolean" then
    return type(value) ~= "boolean" and check.problem(path, "true or false", value)
  elseif kind == "integer" then
    return not check.is_integer(value, least, most)
      and check.problem(path, string.format("an integer from %.0f to %.0f", least, most), value)
  end
  return not check.is_number(value, least, most)
    and check.problem(path, string.format("a number from %.0f to %.0f", least, most), value)
end

local spec, problem = arguments.spec("set")
if not spec then
  return redis.error_reply(problem)
end
if spec.set ~= nil and type(spec.set) ~= "table" then
  return redis.error_reply(check.problem("set", "a map of settings", spec.set))
end
local values = {}
local known = {}
for i, setting in ipairs(settings.ALL) do
  values[setting[1]] = settings.at(meta.HEADER_SIZE + 1 + (i - 1) * 8)
  known[i] = setting[1]
end
for name, value in pairs(spec.set or {}) do
  local setting
  for _, candidate in ipairs(settings.ALL) do
    if candidate[1] == name then
      setting = candidate
    end
  end
  if not setting then
    return redis.error_reply(check.unknown("set", name, table.concat(known, " ")))
  end
  problem = problem_of(setting, value)
  if problem then
    return redis.error_reply(problem)
  end
  values[name] = setting[5] == "boolean" and (value and 1 or 0) or value
end

local shown = {}
local packed = {}
for i, setting in ipairs(settings.ALL) do
  local value = values[setting[1]]
  packed[i] = struct.pack(">d", value)
  if setting[5] == "boolean" then
    shown[setting[1]] = value ~= 0
  else
    shown[setting[1]] = value
  end
end
if spec.set then
  redis.call("SETRANGE", keys.META, meta.HEADER_SIZE, table.concat(packed))
  redis.call("SETRANGE", keys.META, meta.DROP_OFFSET, string.char(settings.drop_flags(values)))
  -- Moments that were noted under longer limits would come too late.
  redis.call("DEL", keys.REVIEW)
  due.note("E", meta.state[meta.NOW_MS])
  due.note("W", meta.state[meta.NOW_MS])
  transition.commit()
end
return cmsgpack.pack(shown)
