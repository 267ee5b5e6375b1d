-- The one place where a job changes its state.
--
--   queued    ready; picked by (priority, id); q in the queue's plain set, w in a lane (module lane)
--                                                     → running, error (expired), cancelled
--   scheduled waits for its time                      → queued, error (expired), cancelled
--   blocked   waits for other jobs                    → queued, error, cancelled
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
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local batch = require "jqlua.batch"
local job = require "jqlua.job"
local lane = require "jqlua.lane"
local queue = require "jqlua.queue"
local room = require "jqlua.room"
local sleepers = require "jqlua.sleepers"
local worker = require "jqlua.worker"

local M = {}

local TABLE = "-q -w -s -b qr qe qc qw wr we wc wq sq sw se sc bq bw be bc rk rd rt re rq rw rs rc tq tw tc kd"

-- How long after an end the queue's old records are looked at: one look for all that ended meanwhile.
M.REVIEW_MS = 5000

--- A job that expires unless it starts: it started or ended.
---@cold
local function leave_expiry(moved)
  if moved[job.ATTEMPT] == 0 and job.options(moved).expires_ms then
    batch.remove(keys.EXPIRING .. moved[job.QUEUE], moved[job.ID])
  end
end

---@cold
local function leave_worker(moved)
  worker.free(moved[job.WORKER], moved[job.ID])
  job.clear(moved, job.HELD)
end

---@cold
local function tell_watchers(moved, to)
  redis.call("SPUBLISH", keys.ENDED, moved[job.ID] .. " " .. job.state_name(to))
end

--- Takes the records of a job away; it is in no set any more.
---@param id string
---@param flags number of the job
function M.forget(id, flags)
  local unwanted = batch.unwanted
  local n = #unwanted
  unwanted[n + 1], unwanted[n + 2] = keys.JOB .. id, keys.ARGUMENT .. id
  if flags % 32 >= job.HAS_OUTCOME then
    unwanted[n + 3], unwanted[n + 4] = keys.OUTCOME .. id, keys.EXTRA .. id
  end
end

--- A new job's first state.
---@param owner table the queue
function M.enter(owner, id, to, score)
  if to == "q" then
    if owner[queue.HEAD_PRIORITY] > score then
      queue.note_head(owner, score, id)
    end
    owner[queue.REOPENED] = true
  end
  batch.add(queue.key(owner, to), score, id)
end

--- Moves a job to another state, in memory and in the sets; the caller has the record written (job.save).
---@param moved table the job
---@param to string letter
---@param score number in the new set
---@param is_popped? boolean whether it is out of its old set already
---@return boolean kept false when there is no record any more
function M.move(moved, to, score, is_popped)
  local from, id = moved[job.STATE], moved[job.ID]
  if not string.find(TABLE, from .. to, 1, true) then
    error("job " .. id .. " cannot go from " .. from .. " to " .. to)
  end
  local owner = queue.load(moved[job.QUEUE])
  if not is_popped then
    batch.remove(queue.key(owner, from), id)
  end
  if moved[job.FLAGS] >= job.LANED then
    lane.moved(owner, moved, to, is_popped)
  end
  local flags = moved[job.FLAGS]
  if from == "r" and flags % 64 >= job.HELD then
    leave_worker(moved)
  elseif moved[job.OPTIONS] ~= "" and to ~= "q" and to ~= "w" then
    leave_expiry(moved)
  end
  moved[job.STATE] = to
  if to == "r" then
    if score < owner[queue.DUE_RUNNING] then
      queue.note_due(owner, queue.DUE_RUNNING, score)
    end
  elseif to == "q" then
    if owner[queue.HEAD_PRIORITY] >= score then
      queue.note_head(owner, score, id)
    end
    owner[queue.REOPENED] = true
  elseif to == "w" then
    lane.join(owner, moved)
  elseif to == "s" or to == "t" then
    queue.note_due(owner, queue.DUE_WAITING, score)
  else
    if from ~= "k" and flags % 8 >= job.WATCHED then
      tell_watchers(moved, to)
    end
    local state = meta.state
    if state[meta.DROP] ~= 0 and to ~= "k" then
      local place = to == "d" and 1 or to == "e" and 2 or 4
      if state[meta.DROP] % (place + place) >= place then
        M.forget(id, moved[job.FLAGS])
        return false
      end
    end
    if state[meta.NOW_MS] + M.REVIEW_MS < owner[queue.DUE_ENDED] then
      queue.note_due(owner, queue.DUE_ENDED, state[meta.NOW_MS] + M.REVIEW_MS)
    end
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
  queue.save_all()
  if state[meta.DUE_CHANGED] then
    meta.save()
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
    meta.state[meta.TIMER_MOVED] = false
    sleepers.keep_time()
  end
end

return M
