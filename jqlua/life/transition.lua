-- The only place where a job changes its state. Module job.states says what states mean, and which may follow which.
--
-- A job is a member of exactly one sorted set, that of its queue and state, so counts are set sizes and cannot drift.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local events = require "jqlua.statistics.events"
local failure_groups = require "jqlua.links.failure_groups"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local lanes = require "jqlua.limits.lanes"
local links = require "jqlua.links.links"
local notices = require "jqlua.webhooks.notices"
local readers = require "jqlua.links.readers"
local queues = require "jqlua.queue.queues"
local room = require "jqlua.limits.room"
local serial = require "jqlua.base.serial"
local settings = require "jqlua.settings.settings"
local sleepers = require "jqlua.workers.sleepers"
local buckets = require "jqlua.statistics.buckets"
local statlog = require "jqlua.statistics.statlog"
local tags = require "jqlua.links.tags"
local unique = require "jqlua.links.unique"
local workers = require "jqlua.workers.workers"

local M = {}

-- What changes mean, by the state before and the one after: lists of the fields below.
local changes = KEPT

local IS_COUNTED = 1 -- statistics count it
local IS_ENDED = 2 -- the job has ended
local IS_END = 3 -- it ends
local LEAVES = 4 -- it leaves a state that has more than its set
local STAYS = 5 -- in its set
local BASE = 6 -- of scores in the new state

local function look_up(from, to, id)
  if not states.may_follow(from .. to) then
    error("job " .. id .. " cannot go from " .. from .. " to " .. to)
  end
  local is_ended = states.is_of(to, states.ENDED)
  changes[from] = changes[from] or {}
  changes[from][to] = {
    from == states.RUNNING or to == states.ERROR or to == states.CANCELLED or to == states.SKIPPED,
    is_ended, is_ended and from ~= states.KEPT,
    from == states.ERROR or from == states.BLOCKED or from == states.RUNNING and to == states.CANCELLED,
    from ~= to and states.set_of(from) == states.set_of(to), (states.band(to)),
  }
  return changes[from][to]
end

-- How long after an end the queue's old records are checked: once for all jobs that ended meanwhile.
local REVIEW_MS = 5000

--- Rare fields: the expiry is dropped when the job starts or ends, the unique key and dependencies when it ends.
local function leave_options(job, options, to, is_end)
  local number = job[jobs.ATTEMPT]
  if options.expires_ms and (to == states.RUNNING and number == 1 or is_end and number == 0) then
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

--- Adds new jobs, which are all alike, in the state that their record has.
---@param new table one of them
---@param score number in the set of that state
---@param ids table id, anything, id, anything, ...
---@param from number index of the first
function M.enter(queue, new, score, ids, from)
  local to, state, last = new[jobs.STATE], meta.state, #ids - 1
  if to == states.QUEUED then
    if queue[queues.HEAD_PRIORITY] > score then -- of equal priority the newest is not the best
      queues.note_head(queue, score, ids[from])
    end
    queue[queues.REOPENED] = true
  end
  local has_options = new[jobs.OPTIONS] ~= ""
  local is_shown = state[meta.EVENTS] or has_options and jobs.options(new).track
  if has_options or is_shown or to == states.IN_LANE then
    for i = from, last, 2 do
      new[jobs.ID] = ids[i]
      if to == states.IN_LANE then
        lanes.join(queue, new)
      end
      if has_options then
        tags.enter(queue, new)
      end
      if is_shown then
        events.note(new, nil, to)
      end
    end
  end
  if state[meta.COUNTED] then
    statlog.entered(new, (last - from) / 2 + 1)
  end
  batch.add_all(queue[queues.KEYS][to] or queues.key(queue, to), score, ids, from, last)
end

--- Enqueues the notifications of an end.
local function notify(job, to)
  for _, new in ipairs(notices.of(job, to)) do
    M.enter(queues.load(new[jobs.QUEUE]), new, meta.state[meta.NOW_MS], { new[jobs.ID], 1 }, 1)
  end
end

--- Updates what refers to a job that changes. It is still in its old state.
local function leave_ties(job, from, to, is_end, is_popped, queue)
  if jobs.has(job, jobs.HELD) then
    workers.free(job[jobs.WORKER], job[jobs.ID])
    jobs.clear(job, jobs.HELD)
  end
  if jobs.has(job, jobs.LANED) then
    lanes.moved(queue, job, to, is_popped)
  end
  local options = jobs.options(job)
  if to ~= states.QUEUED and to ~= states.IN_LANE then
    leave_options(job, options, to, is_end)
  end
  job[jobs.STATE] = to
  if options.track or meta.state[meta.EVENTS] then
    events.note(job, from, to)
  end
  if is_end then
    if jobs.has(job, jobs.AWAITED) then
      redis.call("SPUBLISH", keys.ENDED, job[jobs.ID] .. " " .. states.name(to))
      links.note_end(job[jobs.ID], to)
    end
    if options.notify or meta.has(meta.HAS_WEBHOOKS) then
      notify(job, to)
    end
  end
end

--- Cleans up a state that a job leaves.
local function leave(job, from)
  if from == states.ERROR then
    failure_groups.leave(job)
  elseif from == states.BLOCKED then
    links.leave(job[jobs.ID])
  else
    M.notify_worker(job, "cancelled")
  end
end

--- Removes a job completely.
---@param id string its own, or that of a job like it
local function delete(job, id, from, queue)
  batch.remove(queues.key(queue, from), id)
  M.forget(id, jobs.has(job, jobs.HAS_OUTCOME) or jobs.has(job, jobs.HAS_EXTRA))
  if job[jobs.OPTIONS] ~= "" then
    tags.leave(job, id)
    if from == states.KEPT then -- it had a record since its end
      unique.forget(job)
    end
  end
end

--- Whether others than its queue have to know of what a job does: then leave_ties tells them. Jobs of which nobody has
--- to know, with the same record, go the same way together.
---@return boolean?
function M.is_tied(job)
  if job[jobs.FLAGS] >= jobs.TIED or meta.state[meta.NOTICED] then
    return true
  elseif job[jobs.OPTIONS] ~= "" then
    local options = jobs.options(job)
    return options.unique or options.depends or options.expires_ms or options.track or options.notify
  end
end

--- Moves a job to another state, in memory and in the sets; the caller saves the record (jobs.save).
---@param to string module job.states
---@param score number in the new set
---@param is_popped? boolean whether it was removed from its old set already
---@param ids? string[] of all jobs that start or succeed with it, which are like it and not tied: id, anything, id, ...
---@param first? number index of its own
---@param last? number
---@return boolean kept false if its record was removed
function M.move(job, to, score, is_popped, ids, first, last)
  local from, id, state = job[jobs.STATE], job[jobs.ID], meta.state
  if not ids then
    ids, first, last = { id }, 1, 1
  end
  local change, queue = changes[from] and changes[from][to] or look_up(from, to, id), queues.load(job[jobs.QUEUE])
  -- A move by its worker was counted before (module life.continuation).
  if change[IS_COUNTED] and state[meta.COUNTED] and (from ~= states.RUNNING or job[jobs.HOW] ~= jobs.MOVED_ON) then
    statlog.left(job, from, to, ids, first, last)
  end
  local sets = queue[queues.KEYS]
  if not is_popped and not change[STAYS] then
    batch.remove(sets[from] or queues.key(queue, from), id)
  end
  if M.is_tied(job) then
    leave_ties(job, from, to, change[IS_END], is_popped, queue)
  end
  if change[LEAVES] then
    leave(job, from)
  end
  job[jobs.STATE] = to
  if to == states.RUNNING then
    if score < queue[queues.DUE_RUNNING] then
      queues.note_due(queue, queues.DUE_RUNNING, score)
    end
  elseif change[IS_ENDED] then
    if to ~= states.KEPT and (state[meta.DROPPED] > 0 or queue[queues.FLAGS] >= queues.OWN)
      and settings.is_dropped(to, queue) then
      for i = first, last, 2 do
        delete(job, ids[i], from, queue)
      end
      return false
    end
    local review_ms = state[meta.NOW_MS] + REVIEW_MS
    if review_ms < queue[queues.DUE_ENDED] then
      queues.note_due(queue, queues.DUE_ENDED, review_ms)
    end
  elseif to == states.QUEUED then
    if queue[queues.HEAD_PRIORITY] >= score then
      queues.note_head(queue, score, id)
    end
    queue[queues.REOPENED] = true
  elseif to == states.IN_LANE then
    lanes.join(queue, job)
  elseif to ~= states.BLOCKED then
    queues.note_due(queue, queues.DUE_WAITING, score)
  end
  batch.add_all(sets[to] or queues.key(queue, to), score + change[BASE], ids, first, last)
  return true
end

--- Ends a job that is cancelled or not needed.
---@param to string its state
function M.stop(job, to)
  local now = meta.state[meta.NOW_MS]
  job[jobs.ENDED_MS] = now
  if M.move(job, to, now) then
    jobs.save(job)
  end
end

--- Writes all buffered changes, and wakes sleepers that wait for them.
function M.commit()
  local state = meta.state
  if state[meta.VERSION] > 0 then
    room.save_all()
  end
  if state[meta.ISSUED] then
    serial.save(statlog.follow)
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
  if (statlog.latest[statlog.COUNT] > 0 or statlog.gathered[1]) and statlog.write() then
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
