-- Documents of jobs.
-- KEYS   namespace, namespace:meta
-- ARGV   id, ...   1 to 1000
-- Reply  for each job its document, or nil
-- Errors INVALID ids[i]
-- Flags: read
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local jobs = require "jqlua.job.jobs"
local jobdoc = require "jqlua.job.jobdoc"

local problem = arguments.ids()
if problem then
  return redis.error_reply(problem)
end
local documents = {}
for i, id in ipairs(ARGV) do
  local job = jobs.read(id)
  documents[i] = job and jobdoc.encode(job, redis.call("GET", keys.ARGUMENT .. id)) or false
end
return documents
