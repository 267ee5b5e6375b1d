-- Marks jobs whose end is to be published on <namespace>:ended.
-- KEYS   namespace, namespace:meta
-- ARGV   id, ...   1 to 1000
-- Reply  for each job its state, or nil
-- Errors INVALID ids[i]
-- Flags: drain
local awaited = require "jqlua.job.awaited"
local arguments = require "jqlua.base.arguments"
local batch = require "jqlua.base.batch"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"

local problem = arguments.ids()
if problem then
  return redis.error_reply(problem)
end
local found = {}
for i, id in ipairs(ARGV) do
  local of = jobs.read(id)
  found[i] = of and states.name(of[jobs.STATE]) or false
  if of and states.is_of(of[jobs.STATE], states.UNENDED) then
    awaited.note(of)
  end
end
batch.flush()
return found
