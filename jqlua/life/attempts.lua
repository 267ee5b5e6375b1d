-- How attempts begin and end. (id, token) fences them: only a caller with the token of the running attempt can change
-- anything, and repeating how it ended gets the same answer. A token is "<attempt>-<random digits>".
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local settings = require "jqlua.settings.settings"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local transition = require "jqlua.life.transition"
local extras = require "jqlua.job.extras"
local failure = require "jqlua.life.failure"

local M = {}

--- Renews the lease of a running attempt, up to max_runtime.
---@return number ms as of failure.renewable_ms
function M.renew(job)
  local left_ms = failure.renewable_ms(job)
  if left_ms > 0 then
    local queue, until_ms = queues.load(job[jobs.QUEUE]), meta.state[meta.NOW_MS] + left_ms
    members.add(queue, states.RUNNING, until_ms, job[jobs.ID])
    -- Earlier than before only if the clock was set back.
    queues.note_due(queue, queues.DUE_RUNNING, until_ms)
  end
  return left_ms
end

--- Whether a job's time to start has passed.
function M.has_expired(job)
  local expires_ms = job[jobs.ATTEMPT] == 0 and jobs.options(job).expires_ms
  return expires_ms and expires_ms <= meta.state[meta.NOW_MS]
end

--- Starts jobs that are alike and have been removed from where they waited.
---@param job table the first of them
---@param holder string worker
---@param is_held boolean whether each takes a slot of a worker that is pushed to
---@param ids string[] id, anything, id, anything, ...
---@param first number index of the first in it
---@param last number
---@return boolean started false if the job expired
function M.start(job, holder, is_held, ids, first, last)
  local now = meta.state[meta.NOW_MS]
  if job[jobs.OPTIONS] ~= "" and M.has_expired(job) then
    failure.expire(job, true)
    return false
  end
  job[jobs.ATTEMPT], job[jobs.STARTED_MS] = job[jobs.ATTEMPT] + 1, now
  job[jobs.RANDOM], job[jobs.WORKER] = meta.random(), holder
  if job[jobs.FLAGS] % (2 * jobs.STARTED) < jobs.STARTED then
    job[jobs.FLAGS] = job[jobs.FLAGS] + jobs.STARTED
  end
  transition.move(job, states.RUNNING, now + failure.renewable_ms(job), true, ids, first, last)
  if is_held then
    jobs.set(job, jobs.HELD)
    batch.add_all(keys.HELD .. holder, now, ids, first, last)
  end
  jobs.save_all(job, ids, first, last)
  return true
end

--- Whether a token is that of the running attempt.
---@return boolean
function M.is_running(job, token)
  return job[jobs.STATE] == states.RUNNING and jobs.token(job) == token
end

--- How an attempt ended if it was the last to end: a letter of jobs.HOW. Of the attempt before the running one, only
--- the number is still known.
---@param token string
---@return string? how
local function how_ended(job, token)
  local is_last
  if job[jobs.STATE] == states.RUNNING then
    is_last = tonumber(token:match("^%d+")) == job[jobs.ATTEMPT] - 1
  else
    is_last = token == jobs.token(job)
  end
  return is_last and job[jobs.HOW] or nil
end

--- The answer to who says how an attempt ended that is not running.
---@param job table?
---@param hows string how it may have ended where the call is a repetition: letters of jobs.HOW
---@return string answer
function M.stale_answer(job, token, hows)
  if not job then
    return "NOTFOUND"
  end
  local how, state = how_ended(job, token), job[jobs.STATE]
  if how == jobs.TAKEN then
    return "CANCELLED"
  elseif not how or not string.find(hows, how, 1, true) then
    return "LOST"
  elseif how == jobs.SUCCEEDED then
    return "done"
  elseif how == jobs.FAILED then
    return state == states.ERROR and "error" or "retrying"
  end
  return (state == states.BLOCKED or state == states.SCHEDULED) and states.name(state) or "queued"
end

--- The running attempts of jobs that are alike succeeded.
---@param job table the first of them
---@param results string[] id, result, id, result, ...
function M.succeed(job, results)
  local now, last = meta.state[meta.NOW_MS], #results - 1
  local to, score = states.DONE, now
  job[jobs.HOW], job[jobs.ENDED_MS] = jobs.SUCCEEDED, now
  if job[jobs.FLAGS] % (2 * jobs.KEEP_RESULT) >= jobs.KEEP_RESULT then
    for i = 1, last, 2 do
      batch.write(keys.OUTCOME .. results[i], results[i + 1])
    end
    jobs.set(job, jobs.HAS_OUTCOME)
    to = states.KEPT
    score = now + settings.at(settings.RESULT_TTL, queues.load(job[jobs.QUEUE])) * 1000
  end
  transition.move(job, to, score, false, results, 1, last)
  jobs.save_all(job, results, 1, last)
end

--- Releases the running attempt.
---@param delay_s number
---@param message? string why, for the history
---@return string state
function M.release(job, delay_s, message)
  job[jobs.HOW] = jobs.GIVEN_BACK
  local extra = extras.read(job)
  extras.note_attempt(extra, job, nil, nil, message)
  extras.save(job, extra)
  if delay_s > 0 then
    transition.move(job, states.SCHEDULED, meta.state[meta.NOW_MS] + math.ceil(delay_s * 1000))
  else
    placement.enter(job)
  end
  jobs.save(job)
  return delay_s > 0 and "scheduled" or "queued"
end

return M
