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
local check = require "jqlua.base.check"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local spec = arguments.spec(HEAD)
local record = workers.is_id(spec.worker) and workers.edit(spec.worker)
check.refuse(not record and check.missing("worker", "registered worker", spec.worker))
workers.ask(spec.worker, record, spec.request)
trail.note("worker", spec.worker, spec)
transition.commit()
return 1
