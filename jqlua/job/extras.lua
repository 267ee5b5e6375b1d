-- A job's extra record: what few jobs have, and what is kept of how attempts ended.
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

-- For so many attempts it is kept how they ended, with so much of their messages.
M.MOST_ENDS = 20
M.LONGEST_NOTE = 200

--- The rarely needed fields: {r reason, m message, g group, p progress, t its message, h how the last attempts ended
--- (see note_attempt), n how many before them were dropped, l lapses that were counted apart from failures}.
function M.read(job)
  if jobs.has(job, jobs.HAS_EXTRA) then
    local raw = call("GET", keys.EXTRA .. job[jobs.ID])
    return raw and cmsgpack.unpack(raw) or {}
  end
  return {}
end

function M.save(job, extra)
  call("SET", keys.EXTRA .. job[jobs.ID], cmsgpack.pack(extra))
  jobs.set(job, jobs.HAS_EXTRA)
end

--- Keeps a line of history: {attempt, started_ms, ended_ms, how, worker, reason, group, message}; 0: not an attempt.
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

--- Keeps how the finished attempt ended.
function M.note_attempt(extra, job, reason, group, message)
  M.keep(extra, {
    job[jobs.ATTEMPT], job[jobs.STARTED_MS], meta.state[meta.NOW_MS], job[jobs.HOW], job[jobs.WORKER], reason or "",
    group or "", check.message(message or "", M.LONGEST_NOTE),
  })
end

--- Keeps that the job moved to another queue without having run.
function M.note_move(job)
  local extra = M.read(job)
  local from = check.message("from " .. job[jobs.QUEUE], M.LONGEST_NOTE)
  M.keep(extra, { 0, 0, meta.state[meta.NOW_MS], jobs.MOVED_ON, "", "", "", from })
  M.save(job, extra)
end

return M
