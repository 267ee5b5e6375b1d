-- Says why a job waits: what holds it, what is ahead of it, when it may start.
--
-- @arg    id  job
-- @argv   id
-- @reply  Explanation
-- @errors INVALID id, NOTFOUND id
-- @flags  read
-- @role   viewer, pusher
-- @over   job
-- @http   GET /job/{id}/explain
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local explanation = require "jqlua.find.explanation"
local jobs = require "jqlua.job.jobs"

local id = arguments.id()
local job = jobs.read(id)
check.refuse(not job and check.missing("id", "job", id))
return explanation.encode(job)
