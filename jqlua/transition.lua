-- The one place where a job changes its state.
--
--   queued    ready; picked by (priority, id)         → running, error (expired), cancelled
--   scheduled waits for its time                      → queued, error (expired), cancelled
--   blocked   waits for other jobs                    → queued, error, cancelled
--   running   held by a worker until its lease ends   → done, retrying, error, queued or scheduled (given back), cancelled
--   retrying  failed, waits for its backoff           → queued, cancelled
--   done      k while its result is kept, then d      → (record removed)
--   error     failed for good, or expired             → (record removed)
--   cancelled                                         → (record removed)
--
-- A job is a member of exactly one sorted set, that of its queue and state, so counts are set sizes and cannot drift. Scores:
-- queued: priority; scheduled, retrying: when; running: end of the lease; k: end of the result; d, error, cancelled: when it ended.
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local settings = require "jqlua.settings"
local index = require "jqlua.index"
local job = require "jqlua.job"
local queue = require "jqlua.queue"
local sleepers = require "jqlua.sleepers"
local worker = require "jqlua.worker"

local M = {}

local TABLE = "-q -s -b qr qe qc sq se sc bq be bc rk rd rt re rq rs rc tq tc kd"

-- Gathered until commit: queues that have a new ready job, queues in which jobs ended (by letter and name), keys to remove.
local ready = {}
local ended = {}
local unwanted = {}

--- Only the first start counts for a job that expires.
---@cold
local function leave_expiry(moved)
  if moved.attempt == 0 then
    local expires_ms = job.options(moved).expires_ms
    if expires_ms then
      index.remove(keys.EXPIRING .. moved.queue, moved.id)
    end
  end
end

---@cold
local function tell_watchers(moved, to)
  redis.call("SPUBLISH", keys.ENDED, moved.id .. " " .. job.state_name(to))
end

--- Takes the records of a job away; it is in no set any more.
---@param gone table
function M.forget(gone)
  local n = #unwanted
  unwanted[n + 1] = keys.JOB .. gone.id
  if job.has(gone, job.HAS_OUTCOME) then
    n = n + 1
    unwanted[n + 1] = keys.OUTCOME .. gone.id
  end
  if job.has(gone, job.HAS_EXTRA) then
    unwanted[n + 2] = keys.EXTRA .. gone.id
  end
end

--- A new job's first state.
---@param owner table the queue's record
function M.enter(owner, id, to, score)
  index.add(keys.SET .. to .. ":" .. owner.name, score, id)
  if to == "q" then
    queue.note_head(owner, score, id)
    ready[owner] = true
  else
    queue.note_due(owner, "w", score)
  end
end

--- A queue's jobs can be picked again.
function M.reopen(owner)
  ready[owner] = true
end

--- Moves a job to another state, in memory and in the sets. The caller writes the record afterwards (job.save), unless
--- the answer says that there is none any more.
---@param moved table the job; its `taken` says that it was popped from its set already
---@param to string letter
---@param score number in the new set
---@return boolean kept false when the record is dropped at once
function M.move(moved, to, score)
  local from = moved.state
  if not string.find(TABLE, from .. to, 1, true) then
    error("job " .. moved.id .. " cannot go from " .. from .. " to " .. to)
  end
  local owner = queue.load(moved.queue)
  if moved.taken then
    moved.taken = nil
  else
    index.remove(keys.SET .. from .. ":" .. owner.name, moved.id)
  end
  if from == "r" and job.has(moved, job.HELD) then
    worker.free(job.worker(moved), moved.id)
    job.clear(moved, job.HELD)
  end
  if moved.options_size > 0 and (from == "q" or from == "s") and to ~= "q" then
    leave_expiry(moved)
  end
  moved.state = to
  if to == "r" then
    queue.note_due(owner, "r", score)
  elseif to == "q" then
    queue.note_head(owner, score, moved.id)
    ready[owner] = true
  elseif to == "s" or to == "t" then
    queue.note_due(owner, "w", score)
  else
    if job.has(moved, job.WATCHED) and from ~= "k" then
      tell_watchers(moved, to)
    end
    if to == "k" then
      queue.note_due(owner, "e", score)
    else
      local place = to == "d" and 1 or to == "e" and 2 or 4
      if meta.state.drop % (place + place) >= place then
        M.forget(moved)
        return false
      end
      local ttl_s = settings.retention(to)
      queue.note_due(owner, "e", score + ttl_s * 1000)
      ended[to .. owner.name] = owner
    end
  end
  index.add(keys.SET .. to .. ":" .. owner.name, score, moved.id)
  return true
end

--- More records than the queue may keep: have them swept, at most once a second.
local function limit_ended(owner, letter)
  local _, max = settings.retention(letter)
  if redis.call("ZCARD", keys.SET .. letter .. ":" .. owner.name) > max then
    queue.note_due(owner, "e", meta.state.now_ms + 1000)
  end
end

--- Writes all that the moves gathered.
function M.commit()
  index.flush()
  if unwanted[1] then
    redis.call("UNLINK", unpack(unwanted))
    for i = #unwanted, 1, -1 do
      unwanted[i] = nil
    end
  end
  for what, owner in pairs(ended) do
    ended[what] = nil
    limit_ended(owner, what:sub(1, 1))
  end
  for owner in pairs(ready) do
    ready[owner] = nil
    if owner.paused == 0 and meta.state.sleepers > 0 then
      sleepers.wake(owner.name)
    end
  end
  queue.save()
  if meta.state.timer_moved then
    meta.state.timer_moved = nil
    if meta.state.sleepers > 0 then
      sleepers.keep_time()
    end
  end
  meta.save()
end

return M
