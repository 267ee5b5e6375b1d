-- A job's record: one string. Fixed fields first, so that a transition overwrites a few bytes in place; then
-- name, queue (absent when it is the name), rare options, and the argument as it came. A job that never started has no
-- run section: most jobs that wait are such, and memory is what they cost.
--
-- States, by letter (see transition):
--   q queued  s scheduled  b blocked  r running  t retrying  k done, its result kept  d done  e error  c cancelled
local keys = require "jqlua.keys"

local M = {}

local unpack_struct = struct.unpack
local pack_struct = struct.pack

-- Flags.
M.KEEP_RESULT = 1
M.STARTED = 2 -- has a run section
M.WATCHED = 4 -- somebody waits for its end
M.HAS_OUTCOME = 8 -- keys.OUTCOME exists
M.HAS_EXTRA = 16 -- keys.EXTRA exists
M.HELD = 32 -- runs on a registered worker
M.READ = 64 -- its result was read

-- flags, state, priority, max_retry, timeout_ms, sizes of name, queue, options
local STATIC = ">Bc1i4I4I4BBI2"
local STATIC_SIZE = 18
-- how the last attempt that is over ended, attempt, failures, start, end, size of worker
local RUN = ">c1I4I4ddB"
local RUN_SIZE = 26
local BOTH = ">Bc1i4I4I4BBI2c1I4I4ddB"
-- Enough for the fixed fields and, nearly always, name and queue.
local GLANCE = 159

local NAMES = {
  q = "queued", s = "scheduled", b = "blocked", r = "running", t = "retrying", k = "done", d = "done", e = "error",
  c = "cancelled",
}

---@param letter string
---@return string state as clients know it
function M.state_name(letter)
  return NAMES[letter]
end

--- The record of a new job.
---@param new table as jobspec.parse gives it
function M.encode(new, state)
  local name, queue, options = new.name, new.queue, new.options
  if queue == name then
    queue = ""
  end
  return pack_struct(STATIC, new.keep_result and 1 or 0, state, new.priority, new.max_retry, new.timeout_ms,
    #name, #queue, #options) .. name .. queue .. options .. new.argument
end

--- Decodes a record, or the beginning of one that holds name, queue and options.
---@return table job; `body` is where worker, name, queue and options begin
function M.decode(id, raw)
  local flags = raw:byte(1)
  local job
  if flags % 4 < M.STARTED then
    local f, state, priority, max_retry, timeout_ms, name, queue, options = unpack_struct(STATIC, raw)
    job = {
      id = id, flags = f, state = state, priority = priority, max_retry = max_retry, timeout_ms = timeout_ms,
      name_size = name, queue_size = queue, options_size = options, worker_size = 0,
      ended_how = "-", attempt = 0, failures = 0, started_ms = 0, ended_ms = 0, body = STATIC_SIZE,
    }
  else
    local f, state, priority, max_retry, timeout_ms, name, queue, options, how, attempt, failures, started,
      ended, worker = unpack_struct(BOTH, raw)
    job = {
      id = id, flags = f, state = state, priority = priority, max_retry = max_retry, timeout_ms = timeout_ms,
      name_size = name, queue_size = queue, options_size = options, worker_size = worker,
      ended_how = how, attempt = attempt, failures = failures, started_ms = started, ended_ms = ended,
      body = STATIC_SIZE + RUN_SIZE,
    }
  end
  local at = job.body + job.worker_size
  job.name = raw:sub(at + 1, at + job.name_size)
  job.queue = job.queue_size == 0 and job.name or raw:sub(at + job.name_size + 1, at + job.name_size + job.queue_size)
  return job
end

---@return table? job without its argument; nil when there is no such job
function M.glance(id)
  local raw = redis.call("GETRANGE", keys.JOB .. id, 0, GLANCE - 1)
  if raw == "" then
    return nil
  end
  local job = M.decode(id, raw)
  local size = job.body + job.worker_size + job.name_size + job.queue_size + job.options_size
  if size > GLANCE then
    raw = redis.call("GETRANGE", keys.JOB .. id, 0, size - 1)
    job = M.decode(id, raw)
  end
  job.raw = raw
  return job
end

---@return table? job, with its whole record in `raw`
function M.read(id)
  local raw = redis.call("GET", keys.JOB .. id)
  if raw then
    local job = M.decode(id, raw)
    job.raw = raw
    return job
  end
end

---@return table options; empty for most jobs
function M.options(job)
  if job.options_size == 0 then
    return {}
  end
  local at = job.body + job.worker_size + job.name_size + job.queue_size
  return cmsgpack.unpack(job.raw:sub(at + 1, at + job.options_size))
end

--- The argument's bytes, of a job that was read whole.
function M.argument(job)
  return job.raw:sub(job.body + job.worker_size + job.name_size + job.queue_size + job.options_size + 1)
end

local function header(job)
  local static = pack_struct(STATIC, job.flags, job.state, job.priority, job.max_retry, job.timeout_ms,
    job.name_size, job.queue_size, job.options_size)
  if job.flags % 4 < M.STARTED then
    return static
  end
  return static .. pack_struct(RUN, job.ended_how, job.attempt, job.failures, job.started_ms, job.ended_ms,
    job.worker_size)
end

--- Overwrites the fixed fields.
function M.save(job)
  redis.call("SETRANGE", keys.JOB .. job.id, 0, header(job))
end

--- Writes the start of an attempt: the run section and who runs it. The job must have been read whole.
function M.save_start(job, worker)
  local rest = job.raw:sub(job.body + job.worker_size + 1)
  if job.flags % 4 < M.STARTED then
    job.flags = job.flags + M.STARTED
  end
  job.worker_size = #worker
  job.body = STATIC_SIZE + RUN_SIZE
  job.raw = header(job) .. worker .. rest
  redis.call("SET", keys.JOB .. job.id, job.raw)
end

---@return string worker who ran it last, "" if nobody
function M.worker(job)
  return job.raw:sub(job.body + 1, job.body + job.worker_size)
end

---@return boolean
function M.has(job, flag)
  return job.flags % (flag + flag) >= flag
end

function M.set(job, flag)
  if not M.has(job, flag) then
    job.flags = job.flags + flag
  end
end

function M.clear(job, flag)
  if M.has(job, flag) then
    job.flags = job.flags - flag
  end
end

---@return number created_ms the moment in its id
function M.created_ms(id)
  local number = tonumber(id, 16)
  return (number - number % 1024) / 1024
end

return M
