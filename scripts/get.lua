-- Documents of jobs: all there is to know about each.
--
-- @arg    ids  list<job> 1..1000
-- @argv   ids...
-- @reply  list<Job?> jobs               nil where there is no such job
-- @errors INVALID ids[i]
-- @flags  read
-- @role   viewer, pusher
-- @over   jobs
-- @http   POST /jobs/get
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local jobs = require "jqlua.job.jobs"
local jobdoc = require "jqlua.find.jobdoc"

arguments.ids()
local documents = {}
for i, id in ipairs(ARGV) do
  local job = jobs.read(id)
  documents[i] = job and jobdoc.encode(job, redis.call("GET", keys.ARGUMENT .. id)) or false
end
return documents
