-- The one place where a job changes its state.
--
--   queued    ready; picked by (priority, id); q in the queue's plain set, w in a lane (module limits.lane)
--                                                     → running, error (expired), cancelled
--   scheduled waits for its time                      → queued, blocked, error (expired), cancelled
--   blocked   waits for other jobs                    → queued, scheduled, error, cancelled
--   running   held by a worker until its lease ends   → done, retrying, error, queued or scheduled (given back),
-- cancelled
--   retrying  failed, waits for its backoff           → queued, cancelled
--   done      k while its result is kept, then d      → (record removed)
--   error     failed for good, or expired             → (record removed)
--   cancelled                                         → (record removed)
--
-- A job is a member of exactly one sorted set, that of its queue and state, so counts are set sizes and cannot
-- drift. Scores: queued: priority; scheduled, retrying: when; running: end of the lease; k: end of the result; d,
-- error, cancelled: when it ended.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.writes"
local events = require "jqlua.statistics.events"
local failgroups = require "jqlua.job.failed"
local job = require "jqlua.job.record"
local lane = require "jqlua.limits.lane"
local links = require "jqlua.links.links"
local queue = require "jqlua.queue.record"
local room = require "jqlua.limits.room"
local settings = require "jqlua.settings.settings"
local sleepers = require "jqlua.pick.sleepers"
local statistics = require "jqlua.statistics.buckets"
local statlog = require "jqlua.statistics.log"
local tagindex = require "jqlua.job.tags"
local unique = require "jqlua.job.unique"
local worker = require "jqlua.pick.worker"

local M = {}

local TABLE = "-q -w -s -b qr qe qc qq qw qs qb wr we wc wq ww ws wb sq sw sb se sc bq bw bs be bc rk rd rt re rq rw "
  .. "rs rc tq tw tc kd eq ew cq cw"

---@kept
-- Changes that were looked up in it.
local allowed = {}

---@cold
local function check(change, id)
  if not string.find(TABLE, change, 1, true) then
    error("job " .. id .. " cannot go from " .. change:sub(1, 1) .. " to " .. change:sub(2))
  end
  allowed[change] = true
end

-- How long after an end the queue's old records are looked at: one look for all that ended meanwhile.
M.REVIEW_MS = 5000

---@cold
--- What few jobs have: a time to start by, which is over when it started or ended, and a key that is free when it
--- ended.
local function leave_options(moved, from, to)
  local options = job.given(moved)
  local is_end = string.find("kdec", to, 1, true) and from ~= "k"
  if options.expires_ms and moved[job.ATTEMPT] == 0 and (to == "r" or is_end) then
    batch.remove(keys.EXPIRING .. moved[job.QUEUE], moved[job.ID])
  end
  if is_end and options.unique then
    unique.leave(options, moved[job.ID])
  end
end

---@cold
--- The worker that had a job learns that it was taken away.
function M.tell_worker(moved, what)
  redis.call("SPUBLISH", keys.TOLD .. moved[job.WORKER],
    what .. " " .. moved[job.ID] .. " " .. string.format("%.0f", moved[job.ATTEMPT]))
end

---@cold
local function leave_worker(moved)
  worker.free(moved[job.WORKER], moved[job.ID])
  job.clear(moved, job.HELD)
end

---@cold
local function tell_watchers(moved, to)
  redis.call("SPUBLISH", keys.ENDED, moved[job.ID] .. " " .. job.state_name(to))
  links.note_end(moved[job.ID], to)
end

--- Takes the records of a job away; it is in no set any more.
---@param id string
---@param flags number of the job
function M.forget(id, flags)
  batch.unlink(keys.JOB .. id)
  batch.unlink(keys.ARGUMENT .. id)
  if flags % 32 >= job.HAS_OUTCOME then
    batch.unlink(keys.OUTCOME .. id)
    batch.unlink(keys.EXTRA .. id)
  end
end

---@cold
--- Who listens learns of a change of state.
---@param from? string letter, nil for a new job
local function note_event(moved, from, to)
  if meta.state[meta.DROP] % meta.UNCOUNTED >= meta.EVENTS or string.find(moved[job.OPTIONS], "\165track", 1, true) then
    events.note(moved, from, to)
  end
end

--- A new job's first state, which its record has.
---@param owner table the queue
---@param score number in the set of that state
function M.enter(owner, new, score)
  local id, to = new[job.ID], new[job.STATE]
  if to == "q" then
    if owner[queue.HEAD_PRIORITY] > score then
      queue.note_head(owner, score, id)
    end
    owner[queue.REOPENED] = true
  end
  if new[job.OPTIONS] ~= "" then
    tagindex.enter(owner, new)
  end
  if new[job.OPTIONS] ~= "" or meta.state[meta.DROP] % meta.UNCOUNTED >= meta.EVENTS then
    note_event(new, nil, to)
  end
  if meta.state[meta.DROP] % (2 * meta.UNCOUNTED) < meta.UNCOUNTED then
    statlog.entered(new)
  end
  batch.add(queue.key(owner, to), score, id)
end

---@cold
--- Of what few jobs have: what a move means for it. The job is still in its old state.
local function leave(moved, from, to, is_popped, owner)
  local flags = moved[job.FLAGS]
  if flags >= job.LANED or meta.state[meta.PENDING] ~= 0 then
    lane.moved(owner, moved, to, is_popped)
  end
  if from == "r" and flags % 64 >= job.HELD then
    leave_worker(moved)
  end
  if moved[job.OPTIONS] ~= "" then
    if to ~= "q" and to ~= "w" then
      leave_options(moved, from, to)
    end
    if meta.state[meta.DROP] >= meta.MIGRATING then
      tagindex.enter(owner, moved) -- the sets it comes from may not have been looked through
    end
  end
  moved[job.STATE] = to
  note_event(moved, from, to)
  if flags % 8 >= job.AWAITED and from ~= "k" and string.find("kdec", to, 1, true) then
    tell_watchers(moved, to)
  end
end

---@cold
--- Whether nothing is to be kept of a job that ended so.
local function is_dropped(owner, to)
  local drop = meta.state[meta.DROP]
  if owner[queue.FLAGS] >= queue.OWN then
    return settings.is_dropped(to, owner)
  end
  local place = to == "d" and 1 or to == "e" and 2 or 4
  return drop % (place + place) >= place
end

--- A job runs.
---@param until_ms number end of its lease
function M.run(owner, id, until_ms)
  if until_ms < owner[queue.DUE_RUNNING] then
    queue.note_due(owner, queue.DUE_RUNNING, until_ms)
  end
  batch.add(queue.key(owner, "r"), until_ms, id)
end

local function note_end(owner)
  local now = meta.state[meta.NOW_MS]
  if now + M.REVIEW_MS < owner[queue.DUE_ENDED] then
    queue.note_due(owner, queue.DUE_ENDED, now + M.REVIEW_MS)
  end
end

--- A job that has nothing rare, and whose record is kept, is done.
function M.finish(owner, id)
  batch.remove(queue.key(owner, "r"), id)
  note_end(owner)
  batch.add(queue.key(owner, "d"), meta.state[meta.NOW_MS], id)
end

--- Moves a job to another state, in memory and in the sets; the caller has the record written (job.save).
---@param moved table the job
---@param to string letter
---@param score number in the new set
---@param is_popped? boolean whether it is out of its old set already
---@return boolean kept false when there is no record any more
function M.move(moved, to, score, is_popped)
  local from, id, state = moved[job.STATE], moved[job.ID], meta.state
  local change, drop = from .. to, state[meta.DROP]
  if not allowed[change] then
    check(change, id)
  end
  -- A job that moves on was counted where it was (module life.following).
  if (from == "r" and moved[job.HOW] ~= "m" or to == "e" or to == "c")
    and drop % (2 * meta.UNCOUNTED) < meta.UNCOUNTED then
    statlog.left(moved, from, to)
  end
  local owner = queue.load(moved[job.QUEUE])
  if not is_popped then
    batch.remove(queue.key(owner, from), id)
  end
  if moved[job.OPTIONS] ~= "" or moved[job.FLAGS] % 8 >= job.AWAITED or moved[job.FLAGS] >= job.HELD
    or drop % meta.UNCOUNTED >= meta.EVENTS or state[meta.PENDING] ~= 0 then
    leave(moved, from, to, is_popped, owner)
  end
  if from == "e" then
    failgroups.leave(moved)
  elseif from == "b" then
    links.leave(id)
  elseif from == "r" and to == "c" then
    M.tell_worker(moved, "cancelled")
  end
  moved[job.STATE] = to
  if to == "r" then
    M.run(owner, id, score)
    return true
  elseif to == "q" then
    if owner[queue.HEAD_PRIORITY] >= score then
      queue.note_head(owner, score, id)
    end
    owner[queue.REOPENED] = true
  elseif to == "w" then
    lane.join(owner, moved)
  elseif to == "s" or to == "t" then
    queue.note_due(owner, queue.DUE_WAITING, score)
  elseif to ~= "b" then
    if to ~= "k" and (drop % meta.DROPS > 0 or owner[queue.FLAGS] >= queue.OWN) and is_dropped(owner, to) then
      M.forget(id, moved[job.FLAGS])
      if moved[job.OPTIONS] ~= "" then
        tagindex.leave(moved)
        if from == "k" then -- it had a record since it ended
          unique.forget(moved)
        end
      end
      return false
    end
    note_end(owner)
  end
  batch.add(queue.key(owner, to), score, id)
  return true
end

--- Writes all that was gathered, and wakes who waits for it.
function M.commit()
  local state = meta.state
  if state[meta.VERSION] > 0 then
    room.save_all()
  end
  batch.flush()
  if state[meta.TAGGED] then
    meta.set(meta.TAGGED, false)
    tagindex.flush()
  end
  queue.save_all()
  if state[meta.DUE_CHANGED] then
    meta.save()
  end
  if state[meta.NOTED] then
    events.flush()
  end
  if statlog.gathered[1] and statlog.write() then
    statistics.fold()
  end
  if state[meta.SLEEPERS] > 0 then
    M.wake_sleepers()
  end
end

---@cold
--- Who sleeps may have to know what this call did.
function M.wake_sleepers()
  queue.each_reopened(function(owner)
    if owner[queue.PAUSED] == 0 then
      sleepers.wake(owner[queue.NAME])
    end
  end)
  if meta.state[meta.TIMER_MOVED] then
    meta.set(meta.TIMER_MOVED, false)
    sleepers.keep_time()
  end
end

return M
