-- Takes a worker off the list; its jobs go back to their queues.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {worker}
-- Reply  number of jobs given back
-- Errors INVALID worker, NOTFOUND worker
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local departure = require "jqlua.pick.departure"
local transition = require "jqlua.life.transition"
local worker = require "jqlua.pick.worker"

-- No worker holds more: max_jobs is at most that, and a worker that picks is bounded alike.
local spec, problem = arguments.spec("worker")
if not spec then
  return redis.error_reply(problem)
end
if type(spec.worker) ~= "string" or not worker.is_id(spec.worker) then
  return redis.error_reply(check.problem("worker", "a registered worker's id, w and 14 hexadecimal digits",
    spec.worker))
elseif not worker.is_registered(spec.worker) then
  return redis.error_reply("NOTFOUND worker: " .. spec.worker .. " is not registered, or was dropped as dead")
end
local given_back = departure.jobs_back(spec.worker)
departure.forget(spec.worker)
transition.commit()
return given_back
