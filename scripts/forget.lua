-- Removes a queue that has no jobs, with its settings and statistics.
--
-- @arg    queue  queue
-- @arg    actor  actor?
-- @reply  nothing
-- @errors INVALID queue, NOTFOUND queue, CONFLICT queue (it has jobs)
-- @flags  drain
-- @role   operator
-- @over   all
-- @http   DELETE /queue/{queue}
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local queues = require "jqlua.queue.queues"
local queue_removal = require "jqlua.queue.queue_removal"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec = arguments.operators("queue")
if not check.is_name(spec.queue) or glob.is_pattern(spec.queue) then
  return redis.error_reply(check.problem("queue", check.NAME .. ", no *", spec.queue))
end
local queue = queues.load(spec.queue)
if queue[queues.IS_NEW] then
  return redis.error_reply(check.missing("queue", "queue", spec.queue))
elseif queue_removal.has_jobs(queue) then
  return redis.error_reply("CONFLICT queue: " .. check.show(spec.queue) .. " has jobs: discard them first")
end
queue_removal.forget(queue)
trail.note("forget", spec.queue, spec)
transition.commit()
return 1
