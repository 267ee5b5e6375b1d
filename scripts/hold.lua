-- Closes a key of a constraint for a while, or opens it: nothing starts under it until then.
--
-- @arg    id       name
-- @arg    by       any?                 which key: the value, or the list of values, of a constraint that has `by`
-- @arg    seconds  seconds 0..31536000  0 opens it
-- @arg    actor    actor?
-- @reply  {until_ms: moment_ms}
-- @errors INVALID field, NOTFOUND id, FULL by
-- @flags  write
-- @role   operator
-- @over   all
-- @http   POST /constraint/{id}/hold
local arguments = require "jqlua.base.arguments"
local admission = require "jqlua.life.admission"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local holding = require "jqlua.limits.holding"
local keyrecord = require "jqlua.limits.keyrecord"
local parking = require "jqlua.limits.parking"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
local definition = constraints.load(spec.id)
check.refuse(not definition and check.missing("id", "constraint", spec.id))
local value = holding.value(definition)
if definition.b and spec.seconds > 0 then
  admission.check_keys(definition, "by", value)
end
local until_ms = meta.state[meta.NOW_MS] + math.ceil(spec.seconds * 1000)
parking.hold(keyrecord.load(definition.n, value), until_ms)
if type(definition.bg) == "string" then
  spec.by = spec.by == nil and cjson.null or spec.by
end
for i = 1, type(spec.by) == "table" and #definition.b or 0 do
  spec.by[i] = spec.by[i] == nil and cjson.null or spec.by[i] -- packed as nil
end
trail.note("hold", spec.id, spec)
transition.commit()
return until_ms
