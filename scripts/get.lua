-- Documents of jobs.
-- KEYS   namespace, namespace:meta
-- ARGV   id, ...   1 to 1000
-- Reply  for each job its document, or nil
-- Errors INVALID ids[i]
-- Flags: read
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
