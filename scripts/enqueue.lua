-- Enqueues jobs, all of them or none.
--
-- @arg    jobs     list<NewJob> 1..1000  each with its argument behind it
-- @arg    request  token?               the same token gives the same jobs again: repeating is harmless
-- @argv   [spec], jobs...
-- @reply  enqueued                      {id, created, id, created, ...} in order
-- @errors INVALID jobs[i].field, FULL jobs[i].queue, NOTFOUND jobs[i].depends[j]
-- @flags  write, function
-- @role   pusher
-- @over   enqueue
-- @http   POST /jobs
local check = require "jqlua.base.check"
local meta = require "jqlua.base.meta"
local creation = require "jqlua.life.creation"
local fields = require "jqlua.base.fields"
local constraints = require "jqlua.limits.constraints"
local jobs = require "jqlua.job.jobs"
local jobspec = require "jqlua.job.jobspec"
local queues = require "jqlua.queue.queues"
local request = require "jqlua.life.request"
local transition = require "jqlua.life.transition"

local MOST_JOBS = 1000
local first, token = #ARGV % 2 + 1, nil
if first == 2 then
  local options = check.map(ARGV[1])
  check.refuse(not options and check.not_a_map("options", ARGV[1]))
  for name, value in pairs(options) do
    check.refuse(name ~= "request" and check.unknown("options", name, "request")
      .. " (an odd number of arguments begins with options: does a job lack its argument?)")
    fields.check_value(value, { "token" }, "", name)
  end
  token = options.request
end
local count = (#ARGV - first + 1) / 2
if count < 1 or count > MOST_JOBS then
  check.refuse("INVALID jobs: expected 1 to " .. MOST_JOBS .. " specs, each with its argument, got " .. count)
end
meta.open()
local new_jobs, is_checked, is_linked, at, name = { false }, false, false, first, nil
for i = 1, count do
  local new = jobspec.parse(ARGV[at], i - 1, "jobs")
  if ARGV[at + 1] == "" then
    check.refuse("INVALID jobs[" .. i - 1 .. "].argument: expected one MessagePack value, got no bytes")
  end
  if name ~= new[jobs.QUEUE] then
    name = new[jobs.QUEUE]
    is_checked = is_checked or queues.load(name)[queues.MAX_WAITING] > 0
  end
  is_linked = is_linked or new[jobspec.IS_LINKED]
  new_jobs[i], at = new, at + 2
end
local remembered = token and request.recall("e", token)
if remembered then
  return remembered
end
if is_checked then
  creation.check_room(new_jobs)
end
if count > 1 and meta.state[meta.VERSION] > 0 then
  constraints.check_asked(new_jobs, "jobs")
end
if is_linked then
  creation.check(new_jobs, "jobs")
end
local reply = creation.create_all(new_jobs, ARGV, first + 1, { nil, nil })
transition.commit()
if token then
  request.remember("e", token, reply)
end
return reply
