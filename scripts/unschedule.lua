-- Deletes a recurring job. The jobs it has made stay.
--
-- @arg    id     name
-- @arg    actor  actor?
-- @reply  nothing
-- @errors INVALID id, NOTFOUND id
-- @flags  drain
-- @role   operator
-- @over   all
-- @http   DELETE /schedule/{id}
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local schedules = require "jqlua.schedules.schedules"
local trail = require "jqlua.access.trail"

local spec = arguments.spec(HEAD)
check.refuse(redis.call("HEXISTS", keys.SCHEDULES, spec.id) == 0 and check.missing("id", "schedule", spec.id))
schedules.delete(spec.id)
trail.note("unschedule", spec.id, spec)
return 1
