-- Removes a queue that has no jobs, with its settings and statistics.
--
-- @arg    name   queue
-- @arg    actor  actor?
-- @reply  nothing
-- @errors INVALID name, NOTFOUND name, CONFLICT name (it has jobs)
-- @flags  drain
-- @role   operator
-- @over   all
-- @http   DELETE /queue/{name}
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local queues = require "jqlua.queue.queues"
local queue_removal = require "jqlua.life.queue_removal"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
local queue = queues.load(spec.name)
check.refuse(queue[queues.IS_NEW] and check.missing("name", "queue", spec.name))
check.refuse(queue_removal.has_jobs(queue)
  and "CONFLICT name: " .. check.show(spec.name) .. " has jobs: discard them first")
queue_removal.forget(queue)
trail.note("forget", spec.name, spec)
transition.commit()
return 1
