-- Changes jobs: their queue, priority, argument, time, retries, lease, tags.
--
-- Each gets its state, NOTFOUND, or CONFLICT: only the tags of a job that runs or has ended can be changed.
--
-- @arg    jobs  list<JobChange> 1..1000  each with its argument behind it; an empty one leaves the job's own
-- @argv   jobs...
-- @reply  states jobs
-- @errors INVALID jobs, INVALID jobs[i].field
-- @conflict it runs or has ended; of such only the tags can be changed
-- @flags  write
-- @role   pusher, operator
-- @over   jobs
-- @http   POST /jobs/change
local check = require "jqlua.base.check"
local batch = require "jqlua.base.batch"
local change = require "jqlua.life.change"
local jobs = require "jqlua.job.jobs"
local meta = require "jqlua.base.meta"
local transition = require "jqlua.life.transition"

local MOST_JOBS = 1000

meta.open()
local count = #ARGV / 2
check.refuse((count % 1 ~= 0 or count < 1 or count > MOST_JOBS) and "INVALID jobs: expected 1 to " .. MOST_JOBS
  .. " specs, each with its argument, got " .. #ARGV .. " arguments")
local changes = {}
for i = 1, count do
  changes[i] = change.parse(ARGV[2 * i - 1], i - 1, ARGV[2 * i] ~= "")
end
if meta.state[meta.VERSION] > 0 then
  change.check(changes)
end
local answers = {}
for i, changed in ipairs(changes) do
  answers[i] = change.apply(jobs.read(changed.id), changed, ARGV[2 * i] ~= "" and ARGV[2 * i] or nil)
  batch.flush()
end
transition.commit()
return answers
