-- What operators changed, newest first.
--
-- @arg    cursor  cursor?
-- @arg    count   integer? 1..1000 = 100
-- @reply  page<TrailEntry> trail
-- @errors INVALID field
-- @flags  read
-- @role   operator
-- @over   order
-- @http   GET /trail
local arguments = require "jqlua.base.arguments"
local trail = require "jqlua.access.trail"

return trail.page(arguments.spec(HEAD))
