-- How attempts begin and end. (id, token) is what fences them: only who presents the token of the running attempt
-- changes anything, and who repeats how it ended gets the same answer again. A token is "<attempt>-<random digits>".
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.writes"
local settings = require "jqlua.settings.settings"
local job = require "jqlua.job.record"
local lineup = require "jqlua.limits.placement"
local queue = require "jqlua.queue.record"
local transition = require "jqlua.life.transition"
local failure = require "jqlua.life.failure"

local M = {}

-- The parts of a worker's document that are the same for all. Numbers take their widest form, so that one
-- struct.pack does for all of them.
M.NUMBERS = ">c10i4c9I4c13I4c9d"
M.PRIORITY = "\168priority\210"
M.ATTEMPT = "\167attempt\206"
M.RETRY_COUNT = "\171retry_count\206"
M.TIMEOUT = "\167timeout\203"

---@param of table job
---@return string token of its running attempt, or of the last
function M.token(of)
  return of[job.ATTEMPT] .. "-" .. of[job.RANDOM]
end

---@param of table job
---@return string map as workers get it
function M.document(of)
  local token = M.token(of)
  return "\136\162id\174" .. of[job.ID] .. "\165token\217" .. string.char(#token) .. token .. "\164name\217"
    .. string.char(#of[job.NAME]) .. of[job.NAME] .. "\165queue\217" .. string.char(#of[job.QUEUE]) .. of[job.QUEUE]
    .. struct.pack(M.NUMBERS, M.PRIORITY, of[job.PRIORITY], M.ATTEMPT, of[job.ATTEMPT], M.RETRY_COUNT, of[job.FAILURES],
      M.TIMEOUT, of[job.TIMEOUT_MS] / 1000)
end

---@cold
--- How long an attempt may run at most.
function M.most_ms(of)
  local most_s = job.options(of).max_runtime
  return most_s and math.ceil(most_s * 1000) or math.huge
end

--- For how long the lease of a running attempt can be renewed.
---@return number ms 0 or less when it ran as long as it may
function M.renewable_ms(of)
  if of[job.OPTIONS] == "" then
    return of[job.TIMEOUT_MS]
  end
  return math.min(of[job.TIMEOUT_MS], of[job.STARTED_MS] + M.most_ms(of) - meta.state[meta.NOW_MS])
end

-- What workers get to know of jobs that have it.
local TOLD = { "depends", "schedule", "schedule_ms", "max_runtime", "headers" }

---@cold
---@return string map the document, with what few jobs have
local function full_document(of, document)
  local options = job.options(of)
  local parts, count = { document:sub(2) }, 0
  for _, field in ipairs(TOLD) do
    if options[field] ~= nil then
      count = count + 1
      parts[count + 1] = cmsgpack.pack(field, options[field])
    end
  end
  return string.char(document:byte() + count) .. table.concat(parts)
end

--- As document, with what few jobs have.
function M.told(of)
  local document = M.document(of)
  return of[job.OPTIONS] == "" and document or full_document(of, document)
end

---@cold
--- Whether a job may not start any more.
function M.has_expired(of)
  local expires_ms = of[job.ATTEMPT] == 0 and job.options(of).expires_ms
  return expires_ms and expires_ms <= meta.state[meta.NOW_MS]
end

---@cold
local function hold(of, holder)
  job.set(of, job.HELD)
  batch.add(keys.HELD .. holder, meta.state[meta.NOW_MS], of[job.ID])
end

--- Starts a job that was popped from its queue.
---@param raw string|false its record
---@param holder string worker
---@param is_registered boolean
---@return string? document for the worker; nil when the job is gone or has expired
---@return table? job
function M.start(id, raw, holder, is_registered)
  if not raw then
    return nil
  end
  return M.start_job(job.decode(id, raw), holder, is_registered)
end

--- Starts a job that is out of where it waited.
---@return string? document for the worker; nil when it has expired
---@return table? job
function M.start_job(of, holder, is_registered)
  if of[job.OPTIONS] ~= "" and M.has_expired(of) then
    failure.expire(of, true)
    return nil
  end
  local now = meta.state[meta.NOW_MS]
  local lease_ms = of[job.TIMEOUT_MS]
  if of[job.OPTIONS] ~= "" then
    lease_ms = math.min(lease_ms, M.most_ms(of))
  end
  transition.move(of, "r", now + lease_ms, true)
  of[job.ATTEMPT] = of[job.ATTEMPT] + 1
  of[job.RANDOM] = meta.random()
  of[job.STARTED_MS] = now
  of[job.WORKER] = holder
  if of[job.FLAGS] % 4 < job.STARTED then
    of[job.FLAGS] = of[job.FLAGS] + job.STARTED
  end
  if is_registered then
    hold(of, holder)
  end
  job.save(of)
  return M.told(of), of
end

---@param token string
---@return boolean whether its attempt runs
function M.runs(of, token)
  return of[job.STATE] == "r" and M.token(of) == token
end

---@cold
--- How an attempt that does not run any more ended, if it was the last to end: a letter of job's HOW. Of one before the
--- running attempt only the number is still known.
---@param token string
---@return string? how
function M.ended_how(of, token)
  local is_last
  if of[job.STATE] == "r" then
    is_last = tonumber(token:match("^%d+")) == of[job.ATTEMPT] - 1
  else
    is_last = token == M.token(of)
  end
  return is_last and of[job.HOW] or nil
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
  writes[n + 1], writes[n + 2] = keys.OUTCOME .. of[job.ID], result
  job.set(of, job.HAS_OUTCOME)
  local ttl_s = settings.at(settings.RESULT_TTL, queue.load(of[job.QUEUE]))
  return transition.move(of, "k", meta.state[meta.NOW_MS] + ttl_s * 1000)
end

--- The running attempt succeeded.
function M.succeed(of, result, finished_at)
  local now = meta.state[meta.NOW_MS]
  of[job.HOW] = "s"
  of[job.ENDED_MS] = now
  local kept
  if of[job.FLAGS] % 2 == job.KEEP_RESULT then
    kept = keep_result(of, result)
  else
    kept = transition.move(of, "d", now)
  end
  if kept then
    if finished_at or of[job.FLAGS] % 32 >= job.HAS_EXTRA then
      note_finished_at(of, finished_at)
    end
    job.save(of)
  end
end

---@cold
--- Gives the running attempt back.
---@param delay_s number
---@param message? string why, as history tells it
---@return string state
function M.give_back(of, delay_s, message)
  of[job.HOW] = "r"
  local extra = failure.extra(of)
  failure.note_attempt(extra, of, nil, nil, message)
  failure.save_extra(of, extra)
  if delay_s > 0 then
    transition.move(of, "s", meta.state[meta.NOW_MS] + math.ceil(delay_s * 1000))
  else
    lineup.enter(of)
  end
  job.save(of)
  return delay_s > 0 and "scheduled" or "queued"
end

return M
