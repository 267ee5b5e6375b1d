-- A job's record: one short string beside its argument, which is never written again. A job that never started has
-- no run section: most jobs that wait are such, and memory is what they cost.
--
-- Behind it stands, for the few that have them, the section of their lane (module limits.units).
--
-- In a script a job is a list of the fields below.
--
-- States, by letter (see transition):
--   q queued  w queued, in a lane (see lane)  s scheduled  b blocked  r running  t retrying
--   k done, its result kept  d done  e error  c cancelled
local keys = require "jqlua.base.keys"
local batch = require "jqlua.base.writes"

local M = {}

M.FLAGS = 1
M.STATE = 2 -- letter
M.HOW = 3 -- how the last attempt that is over ended: s success, f failure, l lapsed, r given back, c cancelled, m moved
-- on, - none
M.ATTEMPT = 4
M.FAILURES = 5
M.STARTED_MS = 6
M.ENDED_MS = 7
M.NAME = 8
M.QUEUE = 9
M.PRIORITY = 10
M.MAX_RETRY = 11
M.TIMEOUT_MS = 12
M.OPTIONS = 13 -- MessagePack map of what few jobs have, or empty
M.RANDOM = 14 -- digits of the last token, empty for what started under schema 3
M.WORKER = 15 -- who ran it last
M.ID = 16
M.UNITS = 17 -- section of the lane, or empty

-- Flags.
M.KEEP_RESULT = 1
M.STARTED = 2 -- has a run section
M.AWAITED = 4 -- somebody waits for its end: a watcher, or jobs that depend on it
M.HAS_OUTCOME = 8 -- keys.OUTCOME exists
M.HAS_EXTRA = 16 -- keys.EXTRA exists
M.HELD = 32 -- runs on a registered worker
M.READ = 64 -- its result was read
M.LANED = 128 -- has a section of its lane

-- What changes stands first and what never changes behind it, so that a record can be rewritten by its parts.
M.SHORT = ">Bc1Bc0Bc0i4I4I4I2c0"
M.LONG = ">Bc1c1I4I4ddBc0Bc0i4I4I4I2c0Bc12Bc0"
-- Up to the byte behind the options: 0, or in what schema 3 wrote the length of a worker's name, which has no digits in
-- front of it.
M.LONG_HEAD = ">Bc1c1I4I4ddBc0Bc0i4I4I4I2c0B"
M.LONG_TAIL = ">c12Bc0"
M.RUN = ">Bc1c1I4I4dd"
M.STATIC_IN_SHORT = 3 -- where name, queue, ... begin
M.STATIC_IN_LONG = 28

local NAMES = {
  q = "queued", w = "queued", s = "scheduled", b = "blocked", r = "running", t = "retrying", k = "done", d = "done",
  e = "error", c = "cancelled",
}

-- Jobs this script has looked at, by id.
local open = {}

---@cold
---@param letter string
---@return string state as clients know it
function M.state_name(letter)
  return NAMES[letter]
end

---@param raw string
---@return table job
function M.decode(id, raw)
  local job
  if raw:byte() % 4 < M.STARTED then
    local flags, state, name, queue, priority, max_retry, timeout_ms, options, after = struct.unpack(M.SHORT, raw)
    job = {
      flags, state, "-", 0, 0, 0, 0, name, queue, priority, max_retry, timeout_ms, options, "", "", id,
      flags < M.LANED and "" or raw:sub(after),
    }
  else
    local flags, state, how, attempt, failures, started_ms, ended_ms, name, queue, priority, max_retry, timeout_ms,
      options, size, after = struct.unpack(M.LONG_HEAD, raw)
    local random, worker
    if size == 0 then
      random, worker, after = struct.unpack(M.LONG_TAIL, raw, after)
    else
      random, worker, after = "", raw:sub(after, after + size - 1), after + size
    end
    job = {
      flags, state, how, attempt, failures, started_ms, ended_ms, name, queue, priority, max_retry, timeout_ms, options,
      random, worker, id, flags < M.LANED and "" or raw:sub(after),
    }
  end
  if job[M.QUEUE] == "" then
    job[M.QUEUE] = job[M.NAME]
  end
  return job
end

---@cold
---@return table? job nil when there is no such job
function M.read(id)
  local job = open[id]
  if job then
    return job
  end
  local raw = redis.call("GET", keys.JOB .. id)
  if raw then
    job = M.decode(id, raw)
    open[id] = job
    return job
  end
end

---@cold
--- As read, of a record that was read with others.
---@param raw string|false
---@return table? job
function M.note(id, raw)
  if not open[id] and raw then
    open[id] = M.decode(id, raw)
  end
  return open[id]
end

---@cold
--- A job that this call creates is found by read as well.
function M.hold(new)
  open[new[M.ID]] = new
end

---@return string record
function M.encode(job)
  local name, queue, options, random, worker = job[M.NAME], job[M.QUEUE], job[M.OPTIONS], job[M.RANDOM], job[M.WORKER]
  if queue == name then
    queue = ""
  end
  if job[M.FLAGS] % 4 < M.STARTED then
    return struct.pack(M.SHORT, job[M.FLAGS], job[M.STATE], #name, name, #queue, queue, job[M.PRIORITY],
      job[M.MAX_RETRY], job[M.TIMEOUT_MS], #options, options) .. job[M.UNITS]
  end
  if random == "" then
    return struct.pack(M.LONG_HEAD, job[M.FLAGS], job[M.STATE], job[M.HOW], job[M.ATTEMPT], job[M.FAILURES],
      job[M.STARTED_MS], job[M.ENDED_MS], #name, name, #queue, queue, job[M.PRIORITY], job[M.MAX_RETRY],
      job[M.TIMEOUT_MS], #options, options, #worker) .. worker .. job[M.UNITS]
  end
  return struct.pack(M.LONG, job[M.FLAGS], job[M.STATE], job[M.HOW], job[M.ATTEMPT], job[M.FAILURES],
    job[M.STARTED_MS], job[M.ENDED_MS], #name, name, #queue, queue, job[M.PRIORITY], job[M.MAX_RETRY],
    job[M.TIMEOUT_MS], #options, options, 0, random, #worker, worker) .. job[M.UNITS]
end

--- Has the record written at the next flush.
function M.save(job)
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.JOB .. job[M.ID], M.encode(job)
end

---@cold
---@return table options
function M.options(job)
  return job[M.OPTIONS] == "" and {} or cmsgpack.unpack(job[M.OPTIONS])
end

---@cold
---@return boolean
function M.has(job, flag)
  return job[M.FLAGS] % (flag + flag) >= flag
end

---@cold
function M.set(job, flag)
  if not M.has(job, flag) then
    job[M.FLAGS] = job[M.FLAGS] + flag
  end
end

---@cold
function M.clear(job, flag)
  if M.has(job, flag) then
    job[M.FLAGS] = job[M.FLAGS] - flag
  end
end

---@return number created_ms the moment in its id
function M.created_ms(id)
  local number = tonumber(id, 16)
  return (number - number % 1024) / 1024
end

return M
