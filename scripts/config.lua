-- Shows and changes a namespace's settings.
--
-- @arg    set       ConfigChange?        new values, all of them or none
-- @arg    unset     list<text>? 0..100  settings to reset to their defaults
-- @arg    describe  flag?              describe the settings instead
-- @arg    actor     actor?
-- @reply  Config
-- @reply  SettingDescriptions with describe
-- @errors INVALID set.name, INVALID unset[i], INVALID describe
-- @flags  drain
-- @role   viewer
-- @role   admin with set, unset
-- @bound  any
-- @over   all
-- @http   POST /config
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local due = require "jqlua.base.due"
local settingspec = require "jqlua.settings.settingspec"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
local values = settingspec.current()
settingspec.change(spec, false, values)
local named = settingspec.show(values)
if spec.set ~= nil or spec.unset ~= nil then
  local flags = meta.state[meta.FLAGS]
  redis.call("SETRANGE", keys.META, meta.SETTINGS_OFFSET, settingspec.packed(values))
  meta.save_flags(settingspec.flags(named) + flags - flags % meta.HAS_OWN)
  -- Due times recorded under longer limits would be too late.
  redis.call("DEL", keys.REVIEW)
  due.note(due.REVIEW, due.AT_ONCE)
  due.note(due.WORKERS, due.AT_ONCE)
  if named.events_max == 0 then
    redis.call("UNLINK", keys.EVENTS)
  end
  trail.note("config", "", spec)
  trail.trim(named.trail_max)
  transition.commit()
end
return cmsgpack.pack(spec.describe and settingspec.describe(values) or named)
