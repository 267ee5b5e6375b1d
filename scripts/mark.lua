-- Puts a name to a moment, such as a deploy: it stands in charts, and what was before and after can be compared.
--
-- The same text within a minute is the same mark, whose document comes back.
--
-- @arg    text     text 1..200
-- @arg    time_ms  moment_ms?            when that was; default: now
-- @arg    actor    actor?
-- @reply  Mark
-- @errors INVALID field
-- @flags  write
-- @role   operator
-- @over   first
-- @http   POST /mark
local check = require "jqlua.base.check"
local arguments = require "jqlua.base.arguments"
local marks = require "jqlua.find.marks"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
check.refuse(not check.is_name(spec.text) and check.problem("text", check.NAME, spec.text))
local document, is_new = marks.set(spec)
if is_new then
  trail.note("mark", spec.text, spec)
end
transition.commit()
return document
