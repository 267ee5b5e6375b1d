-- Does what is due by the clock, in bounded steps.
--
-- @arg    limit  integer? 1..1000 = 100  how many steps
-- @reply  {next_ms: ms, moved: integer}  ms until more is due: 0 at once, -1 nothing planned
-- @errors INVALID limit
-- @flags  drain, function
-- @role   worker
-- @over   tick
local arguments = require "jqlua.base.arguments"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local pulse = require "jqlua.life.pulse"
local sweep = require "jqlua.life.sweep"

local spec = arguments.spec("limit")
local limit = spec.limit == nil and 100 or spec.limit
if not check.is_integer(limit, 1, 1000) then
  return redis.error_reply(check.problem("limit", "an integer from 1 to 1000", limit))
end
local moved = 0
if pulse.is_due() then
  pulse.note()
end
if meta.state[meta.NEXT_DUE] <= meta.state[meta.NOW_MS] then
  moved = sweep.run(limit)
end
return { meta.next_ms(), moved }
