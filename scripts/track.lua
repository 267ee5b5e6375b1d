-- Publishes each further change of state of jobs on channels of their own, or stops doing so.
--
-- @arg    ids  list<job> 1..1000
-- @arg    on   flag? = true
-- @reply  states                        nil where there is no such job
-- @errors INVALID field
-- @flags  write
-- @role   pusher, operator
-- @over   jobs
-- @http   POST /jobs/track
local arguments = require "jqlua.base.arguments"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
local is_tracked = spec.on ~= false or nil
local found_states = {}
for i, id in ipairs(spec.ids) do
  local job = jobs.read(id)
  found_states[i] = job and states.name(job[jobs.STATE]) or false
  local options = job and jobs.copy_options(job)
  if options and options.track ~= is_tracked then
    options.track = is_tracked
    jobs.set_options(job, options)
    jobs.save(job)
  end
end
transition.commit()
return found_states
