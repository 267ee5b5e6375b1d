-- Shows and changes a namespace's settings.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {set?: {name: value, ...}, describe?}
-- Reply  document of all settings; with describe a list of {name, value, default, type, unit, least?, most?, queues,
--        meaning}
-- Errors INVALID set.name, INVALID describe
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local due = require "jqlua.base.due"
local settings = require "jqlua.settings.settings"
local settingspec = require "jqlua.settings.settingspec"
local transition = require "jqlua.life.transition"

local spec, problem = arguments.spec("set describe")
if not spec then
  return redis.error_reply(problem)
end
if spec.describe ~= nil and type(spec.describe) ~= "boolean" then
  return redis.error_reply(check.problem("describe", "true or false", spec.describe))
end
local values = settingspec.current()
if spec.set ~= nil then
  local changed
  changed, problem = settingspec.parse(spec.set, false)
  if not changed then
    return redis.error_reply(problem)
  end
  for place, value in pairs(changed) do
    values[place] = value
  end
  local packed, named = {}, {}
  for place, value in ipairs(values) do
    packed[place] = struct.pack(">d", value)
    named[settings.ALL[place][1]] = value
  end
  local flags = meta.state[meta.FLAGS]
  redis.call("SETRANGE", keys.META, meta.HEADER_SIZE, table.concat(packed))
  meta.save_flags(settings.flags(named) + flags - flags % meta.HAS_OWN)
  -- Moments that were noted under longer limits would come too late.
  redis.call("DEL", keys.REVIEW)
  due.note(due.REVIEW, due.AT_ONCE)
  due.note(due.WORKERS, due.AT_ONCE)
  if named.events_max == 0 then
    redis.call("UNLINK", keys.EVENTS)
  end
  transition.commit()
end
if spec.describe then
  return cmsgpack.pack(settingspec.describe(values))
end
return cmsgpack.pack(settingspec.show(values))
