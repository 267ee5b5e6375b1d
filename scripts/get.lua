-- Documents of jobs: all there is to know about each.
--
-- Of the first jobs, until these have 4 MiB: ask for the others again.
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
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local jobs = require "jqlua.job.jobs"
local jobdoc = require "jqlua.find.jobdoc"

arguments.ids()
local documents, bytes = {}, 0
for i, id in ipairs(ARGV) do
  local job = jobs.read(id)
  documents[i] = job and jobdoc.encode(job, redis.call("GET", keys.ARGUMENT .. id)) or false
  bytes = bytes + #(documents[i] or "")
  if bytes >= budget.MOST_BYTES then
    break
  end
end
return documents
