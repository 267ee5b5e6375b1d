-- Does what is due by the clock, in bounded steps.
--
-- @arg    limit  integer? 1..1000 = 100  how many steps
-- @reply  {next_ms: ms, moved: integer}  ms until more is due: 0 at once, -1 nothing planned
-- @errors INVALID limit
-- @flags  drain, function
-- @role   worker
-- @over   none
local arguments = require "jqlua.base.arguments"
local meta = require "jqlua.base.meta"
local sweep = require "jqlua.schedules.sweep"

local spec = arguments.spec(HEAD)
local moved = 0
if meta.state[meta.NEXT_DUE] <= meta.state[meta.NOW_MS] then
  moved = sweep.run(spec.limit or 100)
end
return { meta.next_ms(), moved }
