-- Marks jobs whose end is to be published on <namespace>:ended.
--
-- @arg    ids  list<job> 1..1000
-- @argv   ids...
-- @reply  states                        nil where there is no such job
-- @errors INVALID ids[i]
-- @flags  drain
-- @role   viewer, pusher
-- @http   GET /job/{ids[0]}/polling -> Job
-- @param  timeout  seconds? 0..300 = 5  how long to wait, at most
local awaited = require "jqlua.job.awaited"
local arguments = require "jqlua.base.arguments"
local batch = require "jqlua.base.writes"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"

local problem = arguments.ids()
if problem then
  return redis.error_reply(problem)
end
local found = {}
for i, id in ipairs(ARGV) do
  local of = job.read(id)
  found[i] = of and states.name(of[job.STATE]) or false
  if of and states.is_of(of[job.STATE], states.UNENDED) then
    awaited.note(of)
  end
end
batch.flush()
return found
