-- What follows an attempt that failed: a retry after a backoff, or the end.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local failgroups = require "jqlua.job.failed"
local settings = require "jqlua.settings.settings"
local job = require "jqlua.job.record"
local notices = require "jqlua.webhooks.notices"
local states = require "jqlua.job.states"
local queue = require "jqlua.queue.record"
local transition = require "jqlua.life.transition"
local worker = require "jqlua.pick.worker"

local M = {}

local call = redis.call

-- Of so many attempts it is kept how they ended, and of their messages so much.
M.MOST_ENDS = 20
local LONGEST_NOTE = 200

--- The rarely needed facts: {r reason, m message, g group, f finished_at as given, p progress, t its message,
--- h how the last attempts ended (see note_attempt), n how many before them are forgotten}.
function M.extra(of)
  if job.has(of, job.HAS_EXTRA) then
    local raw = call("GET", keys.EXTRA .. of[job.ID])
    return raw and cmsgpack.unpack(raw) or {}
  end
  return {}
end

function M.save_extra(of, extra)
  call("SET", keys.EXTRA .. of[job.ID], cmsgpack.pack(extra))
  job.set(of, job.HAS_EXTRA)
end

-- math.random repeats itself after a restart; a digest of what is unique about the attempt does not.
local function random(of)
  local now = string.format("%.0f", meta.state[meta.NOW_MS])
  local digest = redis.sha1hex(of[job.ID] .. ":" .. of[job.ATTEMPT] .. ":" .. now)
  return tonumber(digest:sub(1, 8), 16) / 4294967296
end

---@return number ms to wait before the next attempt
local function backoff_ms(of)
  local base, cap, jitter = settings.retry(queue.load(of[job.QUEUE]))
  local options = job.options(of)
  base, cap, jitter = options.retry_base or base, options.retry_cap or cap, options.retry_jitter or jitter
  if base == 0 then
    return 0 -- 0 times an infinite power would be no number
  end
  local ms = 1000 * math.min(cap, base * 2 ^ (of[job.FAILURES] - 1)) * (1 - jitter * random(of))
  return ms - ms % 1
end

---@cold
--- Keeps a line of history: {attempt, started_ms, ended_ms, how, worker, reason, group, message}; attempt 0 is none.
function M.keep(extra, line)
  local past = extra.h or {}
  past[#past + 1] = line
  if #past > M.MOST_ENDS then
    local gone = table.remove(past, 1)
    extra.n = (extra.n or 0) + 1
    extra.a = gone[1] > 0 and gone[1] or extra.a
  end
  extra.h = past
end

---@cold
--- The part of a message that is kept, cut between two characters.
local function note(message)
  local size = math.min(#message, LONGEST_NOTE)
  -- A byte that continues a character begins with the bits 10. A character has three of them at most.
  while size > LONGEST_NOTE - 3 and string.find(message, "^[\128-\191]", size + 1) do
    size = size - 1
  end
  return message:sub(1, size)
end

---@cold
--- Keeps how the attempt that is over ended.
function M.note_attempt(extra, of, reason, group, message)
  M.keep(extra, {
    of[job.ATTEMPT], of[job.STARTED_MS], meta.state[meta.NOW_MS], of[job.HOW], of[job.WORKER], reason or "",
    group or "", note(message or ""),
  })
end

---@cold
--- The job fails for good.
---@param is_popped? boolean whether it is out of its queue already
---@return boolean kept
local function give_up(of, reason, message, group, is_popped)
  notices.explain(reason, note(message), group or reason)
  return transition.move(of, states.ERROR, meta.state[meta.NOW_MS], is_popped)
end

---@param attempt_is_over boolean
local function record(of, attempt_is_over, reason, group, message, error_blob, finished_at)
  local extra = M.extra(of)
  extra.r, extra.m, extra.g, extra.f = reason, message, group, finished_at
  if attempt_is_over then
    M.note_attempt(extra, of, reason, group, message)
  end
  M.save_extra(of, extra)
  if of[job.STATE] == states.ERROR then
    failgroups.enter(of, group or reason, meta.state[meta.NOW_MS])
  end
  if error_blob then
    call("SET", keys.OUTCOME .. of[job.ID], error_blob)
    job.set(of, job.HAS_OUTCOME)
  elseif job.has(of, job.HAS_OUTCOME) then
    call("DEL", keys.OUTCOME .. of[job.ID])
    job.clear(of, job.HAS_OUTCOME)
  end
  job.save(of)
end

---@cold
--- The running attempt failed.
---@param how string job.FAILED or job.LAPSED
---@param group? string what failures are listed by, the reason if nothing is given
---@return string state
function M.fail(of, how, reason, message, error_blob, should_retry, finished_at, group)
  local now = meta.state[meta.NOW_MS]
  if reason == "timeout" and job.has(of, job.HELD) then
    worker.lapsed(of[job.WORKER])
  end
  of[job.HOW] = how
  of[job.FAILURES] = of[job.FAILURES] + 1
  of[job.ENDED_MS] = now
  local state = "retrying"
  local kept
  if should_retry and of[job.FAILURES] <= of[job.MAX_RETRY] then
    kept = transition.move(of, states.RETRYING, now + backoff_ms(of))
  else
    state = "error"
    kept = give_up(of, reason, message, group)
  end
  if kept then
    record(of, true, reason, group, message, error_blob, finished_at)
  end
  return state
end

---@cold
--- The running attempt's lease ran out, or it ran for as long as it may.
function M.lapse(of)
  local most_s = of[job.OPTIONS] ~= "" and job.options(of).max_runtime
  local is_over = most_s and meta.state[meta.NOW_MS] - of[job.STARTED_MS] >= most_s * 1000
  M.fail(of, job.LAPSED, "timeout", is_over and "it ran for max_runtime" or "the lease ran out", nil, true)
end

---@cold
--- The job did not start in time.
---@param is_popped? boolean whether it is out of its queue already
function M.expire(of, is_popped)
  local message = "not started within expires_in"
  if give_up(of, "expired", message, nil, is_popped) then
    record(of, false, "expired", nil, message)
  end
end

---@cold
--- What the job waits for failed, or was cancelled.
---@param what string
function M.depend(of, other_id, what)
  of[job.ENDED_MS] = meta.state[meta.NOW_MS]
  local message = "job " .. other_id .. ", on which it depends, " .. what
  if give_up(of, "dependency", message) then
    record(of, false, "dependency", nil, message)
  end
end

return M
