-- Marks jobs whose end is to be published on <namespace>:ended.
--
-- @arg    ids  list<job> 1..1000
-- @argv   ids...
-- @reply  states                        nil where there is no such job
-- @errors INVALID ids[i]
-- @flags  drain
-- @role   viewer, pusher
-- @over   jobs
local arguments = require "jqlua.base.arguments"
local batch = require "jqlua.base.batch"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"

arguments.ids()
local found_states = {}
for i, id in ipairs(ARGV) do
  local job = jobs.read(id)
  found_states[i] = job and states.name(job[jobs.STATE]) or false
  if job and states.is_of(job[jobs.STATE], states.UNENDED) then
    jobs.await(job)
  end
end
batch.flush()
return found_states
