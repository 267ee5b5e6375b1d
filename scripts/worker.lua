-- Asks a registered worker to be quiet (finish what it has, take no more), to stop, or to resume.
--
-- @arg    worker   worker
-- @arg    request  quiet|stop|resume
-- @arg    actor    actor?
-- @reply  nothing
-- @errors INVALID field, NOTFOUND worker
-- @flags  drain
-- @role   operator
-- @over   all
-- @http   POST /worker/{worker}
local arguments = require "jqlua.base.arguments"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local spec = arguments.spec(HEAD)
workers.registered(spec.worker)
workers.ask(spec.worker, workers.edit(spec.worker), spec.request)
trail.note("worker", spec.worker, spec)
transition.commit()
return 1
