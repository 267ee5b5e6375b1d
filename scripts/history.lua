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
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local history = require "jqlua.job.history"
local jobs = require "jqlua.job.jobs"

meta.open()
check.refuse((#ARGV ~= 1 or not check.is_id(ARGV[1])) and check.problem("id", check.ID, ARGV[1]))
local job = jobs.read(ARGV[1])
check.refuse(not job and check.missing("id", "job", ARGV[1]))
return history.encode(job)
