-- What follows a failed attempt: a retry after a backoff, or state error.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local failure_groups = require "jqlua.links.failure_groups"
local settings = require "jqlua.settings.settings"
local check = require "jqlua.base.check"
local extras = require "jqlua.job.extras"
local jobs = require "jqlua.job.jobs"
local notices = require "jqlua.webhooks.notices"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

-- math.random repeats its sequence after a restart; a digest of what is unique to the attempt does not.
local function random(job)
  local now = string.format("%.0f", meta.state[meta.NOW_MS])
  local digest = redis.sha1hex(job[jobs.ID] .. ":" .. job[jobs.ATTEMPT] .. ":" .. now)
  return tonumber(digest:sub(1, 8), 16) / 4294967296
end

---@param count number of failures or lapses
---@return number ms to wait before the next attempt
local function backoff_ms(job, count)
  local base, cap, jitter = settings.retry(queues.load(job[jobs.QUEUE]))
  local options = jobs.copy_options(job)
  base, cap, jitter = options.retry_base or base, options.retry_cap or cap, options.retry_jitter or jitter
  if base == 0 then
    return 0 -- 0 times an infinite power is NaN
  end
  local ms = 1000 * math.min(cap, base * 2 ^ (count - 1)) * (1 - jitter * random(job))
  return ms - ms % 1
end

--- The job fails for good.
---@param is_popped? boolean whether it is out of its queue already
---@return boolean kept
local function give_up(job, reason, message, group, is_popped)
  notices.set_reason(reason, check.message(message, extras.LONGEST_NOTE), group or reason)
  return transition.move(job, states.ERROR, meta.state[meta.NOW_MS], is_popped)
end

---@param attempt_is_over boolean
local function record(job, extra, attempt_is_over, reason, group, message, error_blob)
  extra.r, extra.m, extra.g = reason, message, group
  if attempt_is_over then
    extras.note_attempt(extra, job, reason, group, message)
  end
  extras.save(job, extra)
  if job[jobs.STATE] == states.ERROR then
    failure_groups.enter(job, group or reason, meta.state[meta.NOW_MS])
  end
  if error_blob then
    call("SET", keys.OUTCOME .. job[jobs.ID], error_blob)
    jobs.set(job, jobs.HAS_OUTCOME)
  elseif jobs.has(job, jobs.HAS_OUTCOME) then
    call("DEL", keys.OUTCOME .. job[jobs.ID])
    jobs.clear(job, jobs.HAS_OUTCOME)
  end
  jobs.save(job)
end

--- For how long the lease of a running attempt can be renewed.
---@return number ms 0 or less after max_runtime
function M.renewable_ms(job)
  local most_s = job[jobs.OPTIONS] ~= "" and jobs.options(job).max_runtime
  if not most_s then
    return job[jobs.TIMEOUT_MS]
  end
  return math.min(job[jobs.TIMEOUT_MS], job[jobs.STARTED_MS] + math.ceil(most_s * 1000) - meta.state[meta.NOW_MS])
end

--- The running attempt failed.
---@param how string jobs.FAILED or jobs.LAPSED
---@param outcome table with the fields of an outcome of type failure
---@return string state
function M.fail(job, how, outcome)
  local now, extra = meta.state[meta.NOW_MS], extras.read(job)
  local reason, message = outcome.reason or "other", outcome.message or ""
  if reason == "timeout" and workers.is_id(job[jobs.WORKER]) then
    workers.lapsed(job[jobs.WORKER], how == jobs.LAPSED and job[jobs.ID])
  end
  job[jobs.HOW] = how
  job[jobs.ENDED_MS] = now
  local most_lapses = how == jobs.LAPSED and M.renewable_ms(job) > 0 and jobs.options(job).max_lapses
  local is_left, count
  if most_lapses then
    count = (extra.l or 0) + 1
    extra.l = count
    is_left = count <= most_lapses
    if not is_left then
      reason, message = "lapses", message .. ", more than max_lapses times"
    end
  else
    count = job[jobs.FAILURES] + 1
    job[jobs.FAILURES] = count
    is_left = outcome.should_retry ~= false and count <= job[jobs.MAX_RETRY]
  end
  local state = "retrying"
  local kept
  if is_left then
    kept = transition.move(job, states.RETRYING,
      now + (outcome.retry_in and math.ceil(outcome.retry_in * 1000) or backoff_ms(job, count)))
  else
    state = "error"
    kept = give_up(job, reason, message, outcome.group)
  end
  if kept then
    record(job, extra, true, reason, outcome.group, message, outcome.blob)
  end
  return state
end

--- The running attempt's lease ran out, or it exceeded max_runtime.
function M.lapse(job)
  local why = M.renewable_ms(job) > 0 and "the lease ran out" or "it ran for max_runtime"
  M.fail(job, jobs.LAPSED, { reason = "timeout", message = why })
end

--- Resets the counts of failures and lapses. Attempts keep counting.
function M.reset(job)
  job[jobs.FAILURES] = 0
  if job[jobs.OPTIONS] ~= "" and jobs.options(job).max_lapses then
    local extra = extras.read(job)
    if extra.l then
      extra.l = nil
      extras.save(job, extra)
    end
  end
end

--- The job did not start in time.
---@param is_popped? boolean whether it is out of its queue already
function M.expire(job, is_popped)
  local message = "not started within expires_in"
  if give_up(job, "expired", message, nil, is_popped) then
    record(job, extras.read(job), false, "expired", nil, message)
  end
end

--- A job that it depends on failed or was cancelled.
---@param what string
function M.fail_dependency(job, other_id, what)
  job[jobs.ENDED_MS] = meta.state[meta.NOW_MS]
  local message = "job " .. other_id .. ", on which it depends, " .. what
  if give_up(job, "dependency", message) then
    record(job, extras.read(job), false, "dependency", nil, message)
  end
end

return M
