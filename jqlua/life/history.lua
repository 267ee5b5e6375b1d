-- A job's history, made of its record and of what is kept of its attempts.
local extras = require "jqlua.job.extras"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local members = require "jqlua.queue.members"

local M = {}

-- How an attempt ended, by letter.
local ENDS = {
  s = "done", f = "failed", l = "lapsed", r = "released", m = "moved", b = "blocked", c = "cancelled", x = "expired",
  p = "dependency", n = "skipped",
}

local function text(value)
  return value ~= "" and value or nil
end

--- The end of a job or of its last attempt, unless it is among the kept ones.
---@param extra table of the job, as kept
---@param seen number the last attempt whose end is kept
---@return table? event
local function last_event(job, extra, seen)
  local state = job[jobs.STATE]
  if state == states.KEPT or state == states.DONE then
    return { event = "done", time_ms = job[jobs.ENDED_MS], attempt = job[jobs.ATTEMPT], worker_id = job[jobs.WORKER] }
  elseif not states.is_of(state, states.ENDED) then
    return nil
  end
  local ended_ms = members.score(job)
  if state == states.SKIPPED then
    return { event = "skipped", time_ms = ended_ms }
  elseif state == states.CANCELLED then
    -- An attempt that was cancelled may be followed by a retry, and that by a cancel while the job waits.
    local is_running = job[jobs.HOW] == jobs.TAKEN and job[jobs.ATTEMPT] > seen
    return {
      event = "cancelled", time_ms = ended_ms, attempt = is_running and job[jobs.ATTEMPT] or nil,
      worker_id = is_running and job[jobs.WORKER] or nil,
    }
  end
  if extra.r == "expired" or extra.r == "dependency" then
    return { event = extra.r, time_ms = ended_ms, message = extra.m }
  end
end

--- The last attempt whose end is or was kept; extra.a: the last whose line was dropped.
---@return number attempt 0 when there is none
local function last_attempt(extra)
  local seen = extra.a or 0
  for _, past in ipairs(extra.h or {}) do
    seen = math.max(seen, past[1])
  end
  return seen
end

---@return table event
local function started(number, started_ms, worker)
  return { event = "started", time_ms = started_ms, attempt = number, worker_id = worker }
end

---@return string document
function M.encode(job)
  local extra = extras.read(job)
  local events = { { event = "enqueued", time_ms = jobs.created_ms(job[jobs.ID]) } }
  local ends, seen = extra.h or {}, last_attempt(extra)
  local last = last_event(job, extra, seen)
  local forgotten = last and #ends == extras.MOST_ENDS and 1 or 0
  for i = forgotten + 1, #ends do
    local number, started_ms, ended_ms, how, worker, reason, group, message = unpack(ends[i])
    if number > 0 then
      events[#events + 1] = started(number, started_ms, worker)
      events[#events + 1] = {
        event = ENDS[how], time_ms = ended_ms, attempt = number, worker_id = worker, reason = text(reason),
        group = text(group) or text(reason), message = text(message),
      }
    else
      events[#events + 1] = { event = ENDS[how], time_ms = ended_ms, message = text(message) }
    end
  end
  if job[jobs.ATTEMPT] > seen then
    events[#events + 1] = started(job[jobs.ATTEMPT], job[jobs.STARTED_MS], job[jobs.WORKER])
  end
  events[#events + 1] = last
  return cmsgpack.pack({ id = job[jobs.ID], events = events, forgotten = (extra.n or 0) + forgotten })
end

--- Before an ended job runs again: keeps how it ended, unless that is the end of a kept attempt.
function M.keep_end(job)
  local extra = extras.read(job)
  local event = last_event(job, extra, last_attempt(extra))
  if not event then
    return
  end
  local how = event.event == "expired" and "x" or event.event == "dependency" and "p"
    or event.event == "skipped" and "n" or "c"
  extras.keep(extra, {
    event.attempt or 0, event.attempt and job[jobs.STARTED_MS] or 0, event.time_ms, how, event.worker_id or "", "", "",
    event.message or "",
  })
  extras.save(job, extra)
end

return M
