-- Deletes a constraint. What it held is free.
--
-- @arg    id     name
-- @arg    actor  actor?
-- @reply  nothing
-- @errors INVALID id, NOTFOUND id
-- @flags  drain
-- @role   operator
-- @over   all
-- @http   DELETE /constraint/{id}
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local rollout = require "jqlua.limits.rollout"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
local definition = constraints.load(spec.id)
check.refuse(not definition and check.missing("id", "constraint", spec.id))
rollout.remove(definition)
trail.note("unconstrain", spec.id, spec)
transition.commit()
return 1
