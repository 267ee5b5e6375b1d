-- What may follow a success: the job moves to another queue, or waits for other jobs and runs again; further jobs are
-- enqueued in the same call.
local meta = require "jqlua.base.meta"
local creation = require "jqlua.life.creation"
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local dependents = require "jqlua.life.dependents"
local extras = require "jqlua.job.extras"
local failure = require "jqlua.life.failure"
local fields = require "jqlua.base.fields"
local glob = require "jqlua.base.glob"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local jobspec = require "jqlua.job.jobspec"
local keys = require "jqlua.base.keys"
local placement = require "jqlua.life.placement"
local links = require "jqlua.links.links"
local moving = require "jqlua.life.moving"
local queues = require "jqlua.queue.queues"
local readers = require "jqlua.links.readers"
local parking = require "jqlua.limits.parking"
local statlog = require "jqlua.statistics.statlog"
local transition = require "jqlua.life.transition"

local M = {}

local MOVE = {
  name = { "name" }, queue = jobspec.FIELDS.queue, priority = jobspec.FIELDS.priority, delay = jobspec.FIELDS.delay,
}
local RESUME = {
  depends = { "list", 1, jobspec.OPTIONS.depends[3], of = "reference", distinct = true, required = true },
  if_failed = jobspec.OPTIONS.if_failed, checkpoint = { "flag" },
}

local MOST_LOOKS = 1000 -- jobs that a call searches for circles
local looks = {}

--- Checks an outcome's `move`.
---@param path string
function M.check_move(move, path)
  fields.check(move, MOVE, path)
  check.refuse(not move.name and not move.queue and "INVALID " .. path .. ": expected name or queue, or both")
  check.refuse(not move.queue and glob.is_pattern(move.name)
    and "INVALID " .. path .. ".name: holds a *, so it cannot be the queue's name too: give a queue")
end

--- Checks an outcome's `resume`.
---@param outcome table outcome, other fields unchecked
---@param path string
function M.check_resume(outcome, path)
  local resume = outcome.resume
  fields.check(resume, RESUME, path)
  jobspec.check_depends(resume.depends, path .. ".",
    check.is_integer(outcome.enqueue, 1, 1000) and outcome.enqueue or 0)
  check.refuse(outcome.move ~= nil and "INVALID " .. path .. ": expected either move or resume, got both")
  check.refuse(resume.if_failed == "only"
    and "INVALID " .. path .. ".if_failed: expected wait, fail or run: the job has begun")
end

--- Parses the jobs behind an outcome.
---@param outcome table outcome
---@param i number its index, for errors
---@param first number index in ARGV of the first spec
function M.parse(outcome, i, first)
  local list = "outcomes[" .. i .. "].enqueue"
  check.refuse(first + 2 * outcome.enqueue - 1 > #ARGV and "INVALID " .. list .. ": expected " .. outcome.enqueue
    .. " specs, each with its argument, behind the outcome's blob")
  outcome.jobs, outcome.first = {}, first + 1
  for j = 1, outcome.enqueue do
    outcome.jobs[j] = jobspec.parse(ARGV[first + 2 * j - 2], j - 1, list)
    check.refuse(ARGV[first + 2 * j - 1] == ""
      and "INVALID " .. list .. "[" .. j - 1 .. "].argument: expected one MessagePack value, got no bytes")
  end
end

--- Checks that read the namespace.
function M.check(outcome, i)
  local path = "outcomes[" .. i .. "]"
  if outcome.resume then
    creation.check_ids(outcome.resume.depends, path .. ".resume.depends")
  end
  if outcome.jobs then
    constraints.check_asked(outcome.jobs, path .. ".enqueue")
    creation.check(outcome.jobs, path .. ".enqueue")
  end
end

--- Enqueues the jobs behind an outcome.
---@return table answer {state, id, created, id, created, ...}
function M.enqueue(outcome, state)
  local answer = creation.create_all(outcome.jobs, ARGV, outcome.first, { state })
  batch.flush() -- a pick in this call may read and start jobs that they changed
  return answer
end

--- Ends the running attempt and moves the job.
---@param outcome table with its blob, the argument
function M.move(job, outcome)
  local move, argument = outcome.move, outcome.blob
  local now = meta.state[meta.NOW_MS]
  job[jobs.HOW] = jobs.MOVED_ON
  if meta.state[meta.COUNTED] then
    statlog.left(job, states.RUNNING, states.QUEUED, { job[jobs.ID] }, 1, 1)
  end
  local extra = extras.read(job)
  extras.note_attempt(extra, job)
  extras.save(job, extra)
  failure.reset(job)
  -- Units and the set of running jobs belong to the queue that it leaves; transition.move handles the new one.
  parking.leave(job)
  batch.remove(queues.key(queues.load(job[jobs.QUEUE]), states.RUNNING), job[jobs.ID])
  job[jobs.ENDED_MS] = now
  jobs.put(job, jobs.NAME, move.name or job[jobs.NAME])
  jobs.put(job, jobs.QUEUE, move.queue or job[jobs.NAME])
  jobs.put(job, jobs.PRIORITY, move.priority or job[jobs.PRIORITY])
  local queue = moving.admit(job)
  redis.call("SET", keys.ARGUMENT .. job[jobs.ID], argument)
  if move.delay and move.delay > 0 then
    transition.move(job, states.SCHEDULED, now + math.ceil(move.delay * 1000), true)
  else
    transition.move(job, placement.place(job, queue, argument), job[jobs.PRIORITY], true)
  end
  jobs.save(job)
end

--- The jobs among `depends` that a job would have to wait for.
---@return string[]? others ids; nil if it would wait for itself
local function pending_dependencies(id, depends, if_failed)
  local others, blocked = {}, {}
  for _, other_id in ipairs(depends) do
    local other = jobs.read(other_id)
    if other_id == id then
      return nil
    elseif dependents.must_wait(other_id, if_failed) then
      others[#others + 1] = other_id
      blocked[#blocked + 1] = other and other[jobs.STATE] == states.BLOCKED and other_id or nil
    end
  end
  -- A circle is possible only if another job waits for this one, and it waits for a blocked one.
  if blocked[1] and redis.call("EXISTS", keys.DEPENDENTS .. id) == 1 then
    local is_circle, looked = links.reaches(blocked, id, looks[1] or MOST_LOOKS)
    looks[1] = (looks[1] or MOST_LOOKS) - (looked or 0)
    return is_circle == false and others or nil
  end
  return others
end

--- Replaces the dependencies in the job's record.
local function set_dependencies(job, depends, if_failed, ready_ms)
  local id, options, stays, gone = job[jobs.ID], jobs.copy_options(job), {}, {}
  for _, other_id in ipairs(depends) do
    stays[other_id] = true
  end
  for _, other_id in ipairs(options.depends or {}) do
    gone[#gone + 1] = not stays[other_id] and other_id or nil
  end
  readers.enter(id, depends)
  readers.leave(id, gone)
  options.depends, options.if_failed, options.ready_ms = depends, if_failed, ready_ms
  jobs.set_options(job, options)
end

--- Ends the running attempt; the job runs again when other jobs have ended, which may be enqueued here.
---@param outcome table with its blob, the new argument if it says so
---@return string|table answer state; with enqueue {state, id, created, ...}
function M.resume(job, outcome)
  local resume, queue = outcome.resume, queues.load(job[jobs.QUEUE])
  local answer = outcome.jobs and M.enqueue(outcome, "") or { "" }
  local depends = creation.ids(resume.depends, answer, 1)
  local others = pending_dependencies(job[jobs.ID], depends, resume.if_failed)
  if not others then
    answer[1] = failure.fail(job, jobs.FAILED, { message = "it would wait for itself", should_retry = false })
    return outcome.jobs and answer or answer[1]
  end
  job[jobs.HOW] = jobs.WAITS
  local extra = extras.read(job)
  extras.note_attempt(extra, job)
  extras.save(job, extra)
  if resume.checkpoint then
    redis.call("SET", keys.ARGUMENT .. job[jobs.ID], outcome.blob)
  end
  parking.leave(job)
  if others[1] then
    transition.move(job, states.BLOCKED, 0)
  else
    job[jobs.ENDED_MS] = meta.state[meta.NOW_MS] -- since when it waits
    transition.move(job, placement.place(job, queue), job[jobs.PRIORITY])
  end
  dependents.link_all(job[jobs.ID], others)
  set_dependencies(job, depends, resume.if_failed, not others[1] and meta.state[meta.NOW_MS] or nil)
  jobs.save(job)
  batch.flush() -- a pick in this call may read and start jobs that it changed
  answer[1] = states.name(job[jobs.STATE])
  return outcome.jobs and answer or answer[1]
end

return M
