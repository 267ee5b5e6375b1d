-- Documents of jobs: all there is to know about each.
--
-- @arg    ids  list<job> 1..1000
-- @argv   ids...
-- @reply  list<Job?> jobs               nil where there is no such job
-- @errors INVALID ids[i]
-- @flags  read
-- @role   viewer, pusher
-- @http   GET /job/{ids[0]} -> Job
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local job = require "jqlua.job.record"
local document = require "jqlua.job.document"

local problem = arguments.ids()
if problem then
  return redis.error_reply(problem)
end
local documents = {}
for i, id in ipairs(ARGV) do
  local of = job.read(id)
  documents[i] = of and document.encode(of, redis.call("GET", keys.ARGUMENT .. id)) or false
end
return documents
