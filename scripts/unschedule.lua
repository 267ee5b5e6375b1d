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
local schedules = require "jqlua.schedules.schedules"
local trail = require "jqlua.access.trail"

local spec = arguments.spec(HEAD)
schedules.existing(spec.id)
schedules.delete(spec.id)
trail.note("unschedule", spec.id, spec)
return 1
