-- The only place where a job changes its state. Module job.states says what states mean, and which may follow which.
--
-- A job is a member of exactly one sorted set, that of its queue and state, so counts are set sizes and cannot drift.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local events = require "jqlua.statistics.events"
local failure_groups = require "jqlua.job.failure_groups"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local lanes = require "jqlua.limits.lanes"
local links = require "jqlua.links.links"
local notices = require "jqlua.webhooks.notices"
local readers = require "jqlua.links.readers"
local queues = require "jqlua.queue.queues"
local room = require "jqlua.limits.room"
local settings = require "jqlua.settings.settings"
local sleepers = require "jqlua.pick.sleepers"
local buckets = require "jqlua.statistics.buckets"
local statlog = require "jqlua.statistics.statlog"
local tags = require "jqlua.job.tags"
local unique = require "jqlua.job.unique"
local workers = require "jqlua.pick.workers"

local M = {}

---@kept
-- Transitions known to be allowed.
local allowed = {}

local function check(change, id)
  if not states.may_follow(change) then
    error("job " .. id .. " cannot go from " .. change:sub(1, 1) .. " to " .. change:sub(2))
  end
  allowed[change] = true
end

-- How long after an end the queue's old records are checked: once for all jobs that ended meanwhile.
M.REVIEW_MS = 5000

--- Rare fields: the expiry is dropped when the job starts or ends, the unique key and dependencies when it ends.
local function leave_options(job, from, to)
  local options = jobs.options(job)
  local is_end = states.is_of(to, states.ENDED) and from ~= states.KEPT
  if options.expires_ms and job[jobs.ATTEMPT] == 0 and (to == states.RUNNING or is_end) then
    batch.remove(keys.EXPIRING .. job[jobs.QUEUE], job[jobs.ID])
  end
  if is_end and options.unique then
    unique.leave(options, job[jobs.ID])
  end
  if is_end and options.depends then
    readers.leave(job[jobs.ID], options.depends)
  end
end

--- Tells a worker that its job was taken away.
function M.notify_worker(job, what)
  redis.call("SPUBLISH", keys.WORKER_CHANNEL .. job[jobs.WORKER],
    what .. " " .. job[jobs.ID] .. " " .. string.format("%.0f", job[jobs.ATTEMPT]))
end

local function leave_worker(job)
  workers.free(job[jobs.WORKER], job[jobs.ID])
  jobs.clear(job, jobs.HELD)
end

local function notify_watchers(job, to)
  redis.call("SPUBLISH", keys.ENDED, job[jobs.ID] .. " " .. states.name(to))
  links.note_end(job[jobs.ID], to)
end

--- Removes the records of a job that is in no set.
---@param id string
---@param is_more boolean whether there are more than record and argument
function M.forget(id, is_more)
  jobs.note_removal(id)
  batch.unlink(keys.JOB .. id)
  batch.unlink(keys.ARGUMENT .. id)
  if is_more then
    batch.unlink(keys.OUTCOME .. id)
    batch.unlink(keys.EXTRA .. id)
  end
end

--- Records an event for a change of state.
---@param from? string nil for a new job
local function note_event(job, from, to)
  if meta.state[meta.EVENTS] or string.find(job[jobs.OPTIONS], "\165track", 1, true) then
    events.note(job, from, to)
  end
end

--- Adds a running job.
---@param until_ms number end of its lease
function M.run(queue, id, until_ms)
  if until_ms < queue[queues.DUE_RUNNING] then
    queues.note_due(queue, queues.DUE_RUNNING, until_ms)
  end
  batch.add(queues.key(queue, states.RUNNING), until_ms, id)
end

local function note_end(queue)
  local at_ms = meta.state[meta.NOW_MS] + M.REVIEW_MS
  if at_ms < queue[queues.DUE_ENDED] then
    queues.note_due(queue, queues.DUE_ENDED, at_ms)
  end
end

--- Moves a job without rare fields, whose record is kept, to done.
function M.finish(queue, id)
  batch.remove(queues.key(queue, states.RUNNING), id)
  note_end(queue)
  batch.add(queues.key(queue, states.DONE), meta.state[meta.NOW_MS], id)
end

--- Adds a new job in the state that its record has.
---@param queue table
---@param score number in the set of that state
function M.enter(queue, new, score)
  local id, to, state = new[jobs.ID], new[jobs.STATE], meta.state
  if to == states.QUEUED then
    if queue[queues.HEAD_PRIORITY] > score then -- of equal priority the newest is not the best
      queues.note_head(queue, score, id)
    end
    queue[queues.REOPENED] = true
  end
  if new[jobs.OPTIONS] ~= "" then
    tags.enter(queue, new)
  end
  if new[jobs.OPTIONS] ~= "" or state[meta.EVENTS] then
    note_event(new, nil, to)
  end
  if state[meta.COUNTED] then
    statlog.entered(new)
  end
  batch.add(queues.key(queue, to), score, id)
end

--- Enqueues the notifications of an end.
local function notify(job, to)
  for _, new in ipairs(notices.of(job, to)) do
    M.enter(queues.load(new[jobs.QUEUE]), new, meta.state[meta.NOW_MS])
  end
end

--- Updates what refers to a job that changes. It is still in its old state.
local function leave_ties(job, from, to, is_popped, queue)
  if jobs.has(job, jobs.LANED) or meta.state[meta.PENDING] ~= 0 then
    lanes.moved(queue, job, to, is_popped)
  end
  if from == states.RUNNING and jobs.has(job, jobs.HELD) then
    leave_worker(job)
  end
  if job[jobs.OPTIONS] ~= "" then
    if to ~= states.QUEUED and to ~= states.IN_LANE then
      leave_options(job, from, to)
    end
  end
  job[jobs.STATE] = to
  note_event(job, from, to)
  if from ~= states.KEPT and states.is_of(to, states.ENDED) then
    if jobs.has(job, jobs.AWAITED) then
      notify_watchers(job, to)
    end
    if job[jobs.OPTIONS] ~= "" or meta.has(meta.HAS_WEBHOOKS) then
      notify(job, to)
    end
  end
end

--- Whether statistics count this change.
local function is_counted(job, from, to)
  if from == states.RUNNING then
    return job[jobs.HOW] ~= jobs.MOVED_ON -- counted before the move (module life.continuation)
  end
  return to == states.ERROR or to == states.CANCELLED or to == states.SKIPPED
end

--- Cleans up a state that a job leaves.
local function leave(job, from, to)
  if from == states.ERROR then
    failure_groups.leave(job)
  elseif from == states.BLOCKED then
    links.leave(job[jobs.ID])
  elseif from == states.RUNNING and to == states.CANCELLED then
    M.notify_worker(job, "cancelled")
  end
end

--- Removes a job completely.
local function delete(job, from)
  M.forget(job[jobs.ID], jobs.has(job, jobs.HAS_OUTCOME) or jobs.has(job, jobs.HAS_EXTRA))
  if job[jobs.OPTIONS] ~= "" then
    tags.leave(job)
    if from == states.KEPT then -- it had a record since its end
      unique.forget(job)
    end
  end
end

--- Whether jobs of a queue that end in this state leave no record.
local function is_dropped(queue, to)
  return (meta.state[meta.DROPPED] > 0 or queue[queues.FLAGS] >= queues.OWN) and settings.is_dropped(to, queue)
end

--- Moves a job to another state, in memory and in the sets; the caller saves the record (jobs.save).
---@param job table
---@param to string module job.states
---@param score number in the new set
---@param is_popped? boolean whether it was removed from its old set already
---@return boolean kept false if its record was removed
function M.move(job, to, score, is_popped)
  local from, id, state = job[jobs.STATE], job[jobs.ID], meta.state
  if not allowed[from .. to] then
    check(from .. to, id)
  end
  if state[meta.COUNTED] and is_counted(job, from, to) then
    statlog.left(job, from, to)
  end
  local queue = queues.load(job[jobs.QUEUE])
  if not is_popped then
    batch.remove(queues.key(queue, from), id)
  end
  if jobs.has_ties(job) or state[meta.NOTICED] or state[meta.PENDING] ~= 0 then
    leave_ties(job, from, to, is_popped, queue)
  end
  leave(job, from, to)
  job[jobs.STATE] = to
  if to == states.RUNNING then
    M.run(queue, id, score)
    return true
  elseif to == states.QUEUED then
    if queue[queues.HEAD_PRIORITY] >= score then
      queues.note_head(queue, score, id)
    end
    queue[queues.REOPENED] = true
  elseif to == states.IN_LANE then
    lanes.join(queue, job)
  elseif to == states.SCHEDULED or to == states.RETRYING then
    queues.note_due(queue, queues.DUE_WAITING, score)
  elseif to == states.KEPT then
    note_end(queue)
  elseif to ~= states.BLOCKED then
    if is_dropped(queue, to) then
      delete(job, from)
      return false
    end
    note_end(queue)
  end
  batch.add(queues.key(queue, to), score, id)
  return true
end

--- Writes all buffered changes, and wakes sleepers that wait for them.
function M.commit()
  local state = meta.state
  if state[meta.VERSION] > 0 then
    room.save_all()
  end
  batch.flush()
  if state[meta.TAGGED] then
    meta.set(meta.TAGGED, false)
    tags.flush()
  end
  queues.save_all()
  if state[meta.DUE_CHANGED] then
    meta.save()
  end
  if state[meta.NOTED] then
    events.flush()
  end
  if statlog.gathered[1] and statlog.write() then
    buckets.fold()
  end
  if state[meta.SLEEPERS] > 0 then
    M.wake_sleepers()
  end
end

--- Wakes sleepers that are concerned by this call.
function M.wake_sleepers()
  queues.each_reopened(function(queue, is_behind)
    if queue[queues.PAUSED] == 0 then
      sleepers.wake(queue[queues.NAME], is_behind)
    end
  end)
  if meta.state[meta.TIMER_MOVED] then
    meta.set(meta.TIMER_MOVED, false)
    sleepers.keep_time()
  end
end

return M
