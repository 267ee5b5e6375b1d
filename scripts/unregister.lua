-- Takes a worker off the list; the jobs of one that is pushed to go back to their queues.
--
-- @arg    worker  worker
-- @reply  {released: integer}           how many jobs
-- @errors INVALID worker, NOTFOUND worker
-- @flags  drain
-- @role   worker
-- @bound  any
-- @over   all
-- @http   DELETE /worker/{worker}
local arguments = require "jqlua.base.arguments"
local departure = require "jqlua.life.departure"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local spec = arguments.spec(HEAD)
if not workers.is_id(spec.worker) and workers.find(spec.worker) then
  workers.forget_listed(spec.worker)
  return 0
end
workers.registered(spec.worker)
local given_back = departure.jobs_back(spec.worker)
departure.forget(spec.worker)
transition.commit()
return given_back
