-- How attempts begin and end. (id, token) is what fences them: only who presents the token of the running attempt
-- changes anything, and who repeats how it ended gets the same answer again. A token is "<attempt>-<random digits>".
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local statlog = require "jqlua.statistics.statlog"
local settings = require "jqlua.settings.settings"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local placement = require "jqlua.limits.placement"
local taking = require "jqlua.limits.taking"
local job_units = require "jqlua.limits.job_units"
local queues = require "jqlua.queue.queues"
local transition = require "jqlua.life.transition"
local failure = require "jqlua.life.failure"

local M = {}

---@cold
--- How long an attempt may run at most.
function M.most_ms(of)
  local most_s = jobs.given(of).max_runtime
  return most_s and math.ceil(most_s * 1000) or math.huge
end

--- For how long the lease of a running attempt can be renewed.
---@return number ms 0 or less when it ran as long as it may
function M.renewable_ms(of)
  if of[jobs.OPTIONS] == "" then
    return of[jobs.TIMEOUT_MS]
  end
  return math.min(of[jobs.TIMEOUT_MS], of[jobs.STARTED_MS] + M.most_ms(of) - meta.state[meta.NOW_MS])
end

--- Renews the lease of a running attempt, as far as that can be.
---@return number ms as of renewable_ms
function M.renew(of)
  local left_ms = M.renewable_ms(of)
  if left_ms > 0 then
    local owner, until_ms = queues.load(of[jobs.QUEUE]), meta.state[meta.NOW_MS] + left_ms
    batch.add(queues.key(owner, states.RUNNING), until_ms, of[jobs.ID])
    -- Earlier than before only if the clock was set back.
    queues.note_due(owner, queues.DUE_RUNNING, until_ms)
  end
  return left_ms
end

---@cold
--- Whether a job may not start any more.
function M.has_expired(of)
  local expires_ms = of[jobs.ATTEMPT] == 0 and jobs.given(of).expires_ms
  return expires_ms and expires_ms <= meta.state[meta.NOW_MS]
end

---@cold
local function hold(of, holder)
  jobs.set(of, jobs.HELD)
  batch.add(keys.HELD .. holder, meta.state[meta.NOW_MS], of[jobs.ID])
end

--- Starts a job that is out of where it waited.
---@param holder string worker
---@param is_registered boolean
---@return string? document for the worker; nil when it has expired
function M.start(of, holder, is_registered)
  local now = meta.state[meta.NOW_MS]
  local lease_ms = of[jobs.TIMEOUT_MS]
  if of[jobs.OPTIONS] ~= "" then
    if M.has_expired(of) then
      failure.expire(of, true)
      return nil
    end
    lease_ms = math.min(lease_ms, M.most_ms(of))
  end
  transition.move(of, states.RUNNING, now + lease_ms, true)
  jobs.begin(of)
  of[jobs.RANDOM], of[jobs.STARTED_MS], of[jobs.WORKER] = meta.random(), now, holder
  if is_registered then
    hold(of, holder)
  end
  jobs.save(of)
  return jobs.document(of)
end

--- Starts a job that was popped from its queue's plain set. One that has nothing rare need not be looked at.
---@param owner table the queue
---@param key string of its record
---@param raw string
---@return string? document
function M.start_popped(owner, id, key, raw, holder, is_registered)
  local first = not is_registered and jobs.first_start(raw)
  local state = meta.state
  if not first or state[meta.EVENTS] then
    local of = jobs.decode(id, raw)
    return M.start(of, holder, is_registered), of
  end
  transition.run(owner, id, state[meta.NOW_MS] + first[3])
  local digits = meta.random()
  local run = state[meta.RUN]
  if not run then
    run = jobs.run(state[meta.NOW_MS], 0, digits, holder)
    state[meta.RUN] = run
  end
  local writes = batch.writes
  local n, record, document = #writes, jobs.first_run(first, id, run, digits)
  writes[n + 1], writes[n + 2] = key, record
  return document
end

--- Whether a token is that of the running attempt.
---@return boolean
function M.runs(of, token)
  return of[jobs.STATE] == states.RUNNING and jobs.token(of) == token
end

---@cold
--- How an attempt that does not run any more ended, if it was the last to end: a letter of job's HOW. Of one before the
--- running attempt only the number is still known.
---@param token string
---@return string? how
function M.ended_how(of, token)
  local is_last
  if of[jobs.STATE] == states.RUNNING then
    is_last = tonumber(token:match("^%d+")) == of[jobs.ATTEMPT] - 1
  else
    is_last = token == jobs.token(of)
  end
  return is_last and of[jobs.HOW] or nil
end

---@cold
--- Whether the running attempt is this one.
---@param number number
---@param digits string of its token
---@return boolean
function M.is_of(of, number, digits)
  return of[jobs.STATE] == states.RUNNING and of[jobs.ATTEMPT] == number and of[jobs.RANDOM] == digits
end

---@cold
--- An attempt that nobody ever had. If it is the last that ended, and its lease ran out, it counts as given back. Jobs
--- that have ended stay ended.
function M.forgive(of, number, digits)
  local state = of[jobs.STATE]
  local is_last = state == states.RUNNING and of[jobs.ATTEMPT] - 1 == number
    or of[jobs.ATTEMPT] == number and of[jobs.RANDOM] == digits
  if not is_last or of[jobs.HOW] ~= jobs.LAPSED or states.is_of(state, states.ENDED) then
    return
  end
  of[jobs.HOW] = jobs.GIVEN_BACK
  if not failure.forgive_lapse(of, number) then
    of[jobs.FAILURES] = math.max(0, of[jobs.FAILURES] - 1) -- a retry by hand may have begun anew
  end
  if state == states.RETRYING then
    placement.enter(of)
  end
  jobs.save(of)
end

---@cold
--- finished_at belongs to the last outcome.
local function note_finished_at(of, finished_at)
  local extra = failure.extra(of)
  extra.f = finished_at
  failure.save_extra(of, extra)
end

---@cold
local function keep_result(of, result)
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.OUTCOME .. of[jobs.ID], result
  jobs.set(of, jobs.HAS_OUTCOME)
  local ttl_s = settings.at(settings.RESULT_TTL, queues.load(of[jobs.QUEUE]))
  return transition.move(of, states.KEPT, meta.state[meta.NOW_MS] + ttl_s * 1000)
end

--- The running attempt succeeded.
function M.succeed(of, result, finished_at)
  local now = meta.state[meta.NOW_MS]
  of[jobs.HOW] = jobs.SUCCEEDED
  of[jobs.ENDED_MS] = now
  local kept
  if jobs.has(of, jobs.KEEP_RESULT) then
    kept = keep_result(of, result)
  else
    kept = transition.move(of, states.DONE, now)
  end
  if kept then
    if finished_at or jobs.has(of, jobs.HAS_EXTRA) then
      note_finished_at(of, finished_at)
    end
    jobs.save(of)
  end
end

--- As succeed, for a job that has nothing rare but units: its record is changed without being taken apart.
---@param said table outcome
---@param key string of the record
---@param raw string|false
---@param is_only boolean whether this call looks at no other job
---@return string? answer nil when there is more to it
function M.succeed_plain(said, key, raw, is_only)
  local state = meta.state
  local digits, started_ms, rest = jobs.plain_run(raw)
  if not digits or said.token ~= "1-" .. digits or state[meta.DROPPED] > 0 or state[meta.NOTICED]
    or jobs.is_open(said.id) then
    return nil
  end
  local owner = queues.load(rest[2])
  if owner[queues.FLAGS] >= queues.OWN then
    return nil
  end
  if state[meta.COUNTED] then
    statlog.done(rest[2], rest[1], jobs.created_ms(said.id), started_ms)
  end
  local section = rest[jobs.UNITS_OF_REST]
  if section ~= "" then
    taking.give_back(job_units.parse(section))
  end
  transition.finish(owner, said.id)
  jobs.save_raw(said.id, key, jobs.succeeded(raw, section, state[meta.NOW_MS]), is_only)
  return "done"
end

---@cold
--- Gives the running attempt back.
---@param delay_s number
---@param message? string why, as history tells it
---@return string state
function M.give_back(of, delay_s, message)
  of[jobs.HOW] = jobs.GIVEN_BACK
  local extra = failure.extra(of)
  failure.note_attempt(extra, of, nil, nil, message)
  failure.save_extra(of, extra)
  if delay_s > 0 then
    transition.move(of, states.SCHEDULED, meta.state[meta.NOW_MS] + math.ceil(delay_s * 1000))
  else
    placement.enter(of)
  end
  jobs.save(of)
  return delay_s > 0 and "scheduled" or "queued"
end

return M
