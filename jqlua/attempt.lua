-- How attempts begin and end. (id, attempt) is the fencing token: only who presents the running attempt changes anything, and who
-- repeats how it ended gets the same answer again.
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local settings = require "jqlua.settings"
local index = require "jqlua.index"
local job = require "jqlua.job"
local transition = require "jqlua.transition"
local failure = require "jqlua.failure"

local M = {}

--- Starts a job that was popped from its queue.
---@param holder string worker
---@param is_registered boolean
---@return table? started {document, argument}; nil when the job is gone or has expired
function M.start(id, holder, is_registered)
  local started = job.read(id)
  if not started then
    return nil
  end
  local now = meta.state.now_ms
  started.taken = true
  if started.options_size > 0 and started.attempt == 0 then
    local expires_ms = job.options(started).expires_ms
    if expires_ms and expires_ms <= now then
      failure.expire(started)
      return nil
    end
  end
  transition.move(started, "r", now + started.timeout_ms)
  if is_registered then
    job.set(started, job.HELD)
    index.add(keys.HELD .. holder, now, id)
  end
  started.attempt = started.attempt + 1
  started.started_ms = now
  job.save_start(started, holder)
  return M.document(started)
end

---@return table {document, argument} as workers get them
function M.document(of)
  return {
    "\135" .. cmsgpack.pack("id", of.id, "name", of.name, "queue", of.queue, "priority", of.priority, "attempt",
      of.attempt, "retry_count", of.failures, "timeout", of.timeout_ms / 1000),
    job.argument(of),
  }
end

---@return boolean whether this attempt runs
function M.runs(of, number)
  return of.state == "r" and of.attempt == number
end

--- How an attempt that does not run any more ended, if it was the last to end: a letter of job's ended_how.
---@return string? how
function M.ended_how(of, number)
  local last = of.state == "r" and of.attempt - 1 or of.attempt
  if number == last and number > 0 then
    return of.ended_how
  end
end

---@return string state
function M.succeed(of, result, finished_at)
  local now = meta.state.now_ms
  of.ended_how = "s"
  of.ended_ms = now
  local kept
  if job.has(of, job.KEEP_RESULT) then
    redis.call("SET", keys.OUTCOME .. of.id, result)
    job.set(of, job.HAS_OUTCOME)
    kept = transition.move(of, "k", now + settings.at(settings.RESULT_TTL) * 1000)
  else
    kept = transition.move(of, "d", now)
  end
  if kept then
    if finished_at or job.has(of, job.HAS_EXTRA) then
      local extra = failure.extra(of)
      extra.f = finished_at
      failure.save_extra(of, extra)
    end
    job.save(of)
  end
  return "done"
end

---@cold
--- Gives the running attempt back.
---@param delay_s number
---@return string state
function M.give_back(of, delay_s)
  of.ended_how = "r"
  if delay_s > 0 then
    transition.move(of, "s", meta.state.now_ms + math.ceil(delay_s * 1000))
  else
    transition.move(of, "q", of.priority)
  end
  job.save(of)
  return delay_s > 0 and "scheduled" or "queued"
end

return M
