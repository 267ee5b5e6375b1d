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
local glob = require "jqlua.base.glob"
local queues = require "jqlua.queue.queues"
local queue_removal = require "jqlua.queue.queue_removal"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec = arguments.operators("name")
if not check.is_name(spec.name) or glob.is_pattern(spec.name) then
  return redis.error_reply(check.problem("name", check.NAME .. ", no *", spec.name))
end
local queue = queues.load(spec.name)
if queue[queues.IS_NEW] then
  return redis.error_reply(check.missing("name", "queue", spec.name))
elseif queue_removal.has_jobs(queue) then
  return redis.error_reply("CONFLICT name: " .. check.show(spec.name) .. " has jobs: discard them first")
end
queue_removal.forget(queue)
trail.note("forget", spec.name, spec)
transition.commit()
return 1
