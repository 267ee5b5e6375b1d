-- What happened to a job so far, oldest first.
--
-- @arg    id  job
-- @argv   id
-- @reply  History
-- @errors INVALID id, NOTFOUND id
-- @flags  read
-- @role   viewer, pusher
-- @over   job
-- @http   GET /job/{id}/history
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local history = require "jqlua.life.history"
local jobs = require "jqlua.job.jobs"

local id = arguments.id()
local job = jobs.read(id)
check.refuse(not job and check.missing("id", "job", id))
return history.encode(job)
