-- A job's record: one short string beside its argument, which is never rewritten. A job that never started has no run
-- section: most waiting jobs are such, and memory is what they cost. Jobs under constraints or in fair queues have a
-- section of units at the end (module limits.job_units). In a script a job is a list of the fields below.
local keys = require "jqlua.base.keys"
local batch = require "jqlua.base.batch"
local memory = require "jqlua.base.memory"
local states = require "jqlua.job.states"

local M = {}

M.FLAGS = 1
M.STATE = 2 -- module job.states
M.HOW = 3 -- how the last finished attempt ended, see below
M.ATTEMPT = 4
M.FAILURES = 5
M.STARTED_MS = 6
M.ENDED_MS = 7
M.NAME = 8
M.QUEUE = 9
M.PRIORITY = 10
M.MAX_RETRY = 11
M.TIMEOUT_MS = 12
M.OPTIONS = 13 -- MessagePack map of rare fields, or empty
M.RANDOM = 14 -- digits of the last token
M.WORKER = 15 -- that ran it last
M.ID = 16
M.UNITS = 17 -- section of units, or empty
M.REST = 18 -- the decoded tail of the record, which rarely changes; false for a new job

-- How an attempt ended.
M.NOT_YET = "-" -- none has ended
M.SUCCEEDED = "s"
M.FAILED = "f" -- reported by its worker
M.LAPSED = "l" -- its lease ran out, or its worker is gone
M.GIVEN_BACK = "r" -- by its worker
M.TAKEN = "c" -- cancelled, or taken from its worker
M.MOVED_ON = "m" -- by its worker, to another queue or name
M.WAITS = "b" -- by its worker, to wait for other jobs

-- Flags.
M.KEEP_RESULT = 1
M.STARTED = 2 -- has a run section
M.AWAITED = 4 -- a watcher waits for its end, or jobs depend on it or read its result
M.HAS_OUTCOME = 8 -- keys.OUTCOME exists
M.HAS_EXTRA = 16 -- keys.EXTRA exists
M.HELD = 32 -- runs on a registered worker
M.READ = 64 -- its result was read
M.LANED = 128 -- has a section of units

-- The head changes from start to start: flags and state; for a job that has started also its attempt. The tail rarely
-- changes: name, queue, ..., options, then units.
local NEVER_STARTED = ">Bc1"
local STARTED = ">Bc1c1I4I4ddc12Bc0"
local REST = ">Bc0Bc0i4I4I4I2c0"
local LONG = 65535 -- as size of the options: the real size precedes them in 4 bytes
local REST_OF_NEVER_STARTED = 3 -- where it begins
local DIGITS = 28 -- offset of the digits in a started record, behind its times

-- Jobs this call has read, by id; as an encoded record where that was enough.
local open = {}

-- Ids of those whose records this call removes.
local removed = {}

---@kept
-- Decoded tails of records, by their bytes: {name, queue, priority, max_retry, timeout_ms, options, units, and the
-- fields below}.
local rests = {}

M.UNITS_OF_REST = 7
local BYTES = 8
local WORKER_FIELDS = 9 -- of a worker's document
local HEAD = 10
local DECODED_OPTIONS = 11 -- options, decoded

local function decode_rest(bytes)
  local name, queue, priority, max_retry, timeout_ms, options, after = struct.unpack(REST, bytes)
  if #options == LONG then
    options, after = struct.unpack(">I4c0", bytes, after - LONG)
  end
  if queue == "" then
    queue = name
  end
  return memory.keep(rests, bytes, {
    name, queue, priority, max_retry, timeout_ms, options, bytes:sub(after), bytes, false, false, false,
  })
end

---@param raw string
---@return table job
function M.decode(id, raw)
  if raw:byte() % 4 < M.STARTED then
    local bytes = raw:sub(REST_OF_NEVER_STARTED)
    local rest = rests[bytes] or decode_rest(bytes)
    return {
      raw:byte(), raw:sub(2, 2), M.NOT_YET, 0, 0, 0, 0, rest[1], rest[2], rest[3], rest[4], rest[5], rest[6], "", "",
      id, rest[7], rest,
    }
  end
  local flags, state, how, attempt, failures, started_ms, ended_ms, random, worker, after = struct.unpack(STARTED, raw)
  local bytes = raw:sub(after)
  local rest = rests[bytes] or decode_rest(bytes)
  return {
    flags, state, how, attempt, failures, started_ms, ended_ms, rest[1], rest[2], rest[3], rest[4], rest[5], rest[6],
    random, worker, id, rest[7], rest,
  }
end

---@param raw string
---@return boolean whether a record has a section of units
function M.is_laned(raw)
  return raw:byte() >= M.LANED
end

--- Like read, from a record that was read with others.
---@param raw string|false
---@return table? job
function M.from_record(id, raw)
  local known = open[id] or raw
  if type(known) == "string" then
    known = M.decode(id, known)
    open[id] = known
  end
  return known or nil
end

---@return table? job nil if there is none
function M.read(id)
  local job = open[id]
  if job then
    return M.from_record(id, false)
  end
  local raw = redis.call("GET", keys.JOB .. id)
  if raw then
    job = M.decode(id, raw)
    open[id] = job
    return job
  end
end

--- Notes that this call removes the job's record. It can still be read, so that one that is named twice gets the same
--- answer; but it is not written again.
function M.note_removal(id)
  removed[id] = true
end

--- Makes read find a job that this call creates.
function M.cache(new)
  open[new[M.ID]] = new
end

--- The tail of a job's record, as it is now.
---@return table rest
local function rest_of(job)
  local rest = job[M.REST]
  local name, queue, options = job[M.NAME], job[M.QUEUE], job[M.OPTIONS]
  local bytes
  if rest and rest[6] == options and rest[3] == job[M.PRIORITY] and rest[2] == queue and rest[1] == name
    and rest[4] == job[M.MAX_RETRY] and rest[5] == job[M.TIMEOUT_MS] then
    if rest[7] == job[M.UNITS] then
      return rest
    end
    bytes = rest[BYTES]:sub(1, -1 - #rest[7]) .. job[M.UNITS]
  else
    local own_queue = queue == name and "" or queue
    local size, more = #options, ""
    if size >= LONG then
      local long = struct.pack(">I4", size) .. options
      size, options, more = LONG, long:sub(1, LONG), long:sub(LONG + 1)
    end
    bytes = struct.pack(REST, #name, name, #own_queue, own_queue, job[M.PRIORITY], job[M.MAX_RETRY],
      job[M.TIMEOUT_MS], size, options) .. more .. job[M.UNITS]
  end
  rest = rests[bytes] or memory.keep(rests, bytes, {
    name, queue, job[M.PRIORITY], job[M.MAX_RETRY], job[M.TIMEOUT_MS], job[M.OPTIONS], job[M.UNITS], bytes, false,
    false, false,
  })
  job[M.REST] = rest
  return rest
end

-- A started record is the attempt's fields, its run section, and the tail.
local function front_of(job)
  return struct.pack(">Bc1c1I4I4", job[M.FLAGS], job[M.STATE], job[M.HOW], job[M.ATTEMPT], job[M.FAILURES])
end

---@return string run part of a record
function M.run(started_ms, ended_ms, digits, worker)
  return struct.pack(">ddc12Bc0", started_ms, ended_ms, digits, #worker, worker)
end

---@return string record
function M.encode(job)
  if job[M.FLAGS] % 4 < M.STARTED then
    return struct.pack(NEVER_STARTED, job[M.FLAGS], job[M.STATE]) .. rest_of(job)[BYTES]
  end
  return front_of(job) .. M.run(job[M.STARTED_MS], job[M.ENDED_MS], job[M.RANDOM], job[M.WORKER])
    .. rest_of(job)[BYTES]
end

--- Begins another attempt.
function M.begin(job)
  job[M.ATTEMPT] = job[M.ATTEMPT] + 1
  if job[M.FLAGS] % 4 < M.STARTED then
    job[M.FLAGS] = job[M.FLAGS] + M.STARTED
  end
end

---@kept
-- First starts, by the record of a waiting job: {head of the started record, tail, lease in ms}, or false if a start
-- takes more than writing this.
local first_starts = {}

--- What the first start of a job without rare fields writes, besides the run section.
---@param raw string its record
---@return table|false first
function M.first_start(raw)
  local first = first_starts[raw]
  if first == nil then
    first = false
    local job = M.decode("", raw)
    if job[M.ATTEMPT] == 0 and job[M.FLAGS] % M.LANED < M.STARTED and job[M.OPTIONS] == "" then
      M.begin(job)
      job[M.STATE] = states.RUNNING
      first = { front_of(job), job[M.REST], job[M.TIMEOUT_MS] }
    end
    memory.keep(first_starts, raw, first)
  end
  return first
end

-- Rare fields that workers are sent. fields.py: told
local TOLD_OPTIONS = { "max_runtime", "depends", "headers", "schedule", "schedule_ms", "webhook" }
-- end of told

--- The part of a worker's document that is the same at each start, and the map's head. Numbers have their widest form.
---@return string fields
---@return string head
local function worker_fields(rest)
  local name, queue = rest[1], rest[2]
  local count = 8
  local fields = "\164name\217" .. string.char(#name) .. name .. "\165queue\217" .. string.char(#queue) .. queue
    .. struct.pack(">c10i4c9d", "\168priority\210", rest[3], "\167timeout\203", rest[5] / 1000)
  if rest[6] ~= "" then
    local options = cmsgpack.unpack(rest[6])
    for _, field in ipairs(TOLD_OPTIONS) do
      if options[field] ~= nil then
        fields, count = fields .. cmsgpack.pack(field, options[field]), count + 1
      end
    end
  end
  return fields, count < 16 and string.char(128 + count) or struct.pack(">BI2", 0xDE, count)
end

--- The token of the running attempt, or of the last one.
---@return string token "<attempt>-<digits>"
function M.token(job)
  local attempt = job[M.ATTEMPT]
  return (attempt == 1 and "1" or attempt) .. "-" .. job[M.RANDOM]
end

local FIRST_ATTEMPT = "\167attempt\206\0\0\0\1\171retry_count\206\0\0\0\0"

---@return string document for the worker
local function document_of(rest, id, attempt, failures, token)
  if not rest[WORKER_FIELDS] then
    rest[WORKER_FIELDS], rest[HEAD] = worker_fields(rest)
  end
  local numbers = FIRST_ATTEMPT
  if attempt > 1 then
    numbers = struct.pack(">c9I4c13I4", "\167attempt\206", attempt, "\171retry_count\206", failures)
  end
  local named = #id == 14 and "\162id\174" or "\162id\176"
  return rest[HEAD] .. named .. id .. "\165token\217" .. string.char(#token) .. token .. rest[WORKER_FIELDS] .. numbers
end

---@param job table started, its record saved
---@return string document for its worker
function M.document(job)
  return document_of(job[M.REST], job[M.ID], job[M.ATTEMPT], job[M.FAILURES], M.token(job))
end

--- The record and the document of a first start.
---@param run string as of M.run
---@return string record
---@return string document
function M.first_run(first, id, run, digits)
  return first[1] .. run .. first[2][BYTES], document_of(first[2], id, 1, 0, "1-" .. digits)
end

--- Whether a job, by its record, runs for the first time and has no rare fields.
---@param raw string|false
---@return string? digits of its token; nil if not
---@return number? started_ms
---@return table? rest {name, queue, ...}, with its units at UNITS_OF_REST
function M.plain_run(raw)
  if not raw or raw:byte() % M.LANED ~= M.STARTED or raw:sub(2, 7) ~= "r-\0\0\0\1" then
    return nil
  end
  local started_ms, _, digits, _, after = struct.unpack(">ddc12Bc0", raw, 12)
  local bytes = raw:sub(after)
  local rest = rests[bytes] or decode_rest(bytes)
  if rest[6] == "" then
    return digits, started_ms, rest
  end
end

--- The record of such a job after it succeeded and released its units.
---@param raw string
---@param section string its units
---@return string record
function M.succeeded(raw, section, ended_ms)
  return "\2ds" .. raw:sub(4, 19) .. struct.pack(">d", ended_ms) .. raw:sub(DIGITS, -1 - #section)
end

--- Buffers the record for the next flush.
---@param is_only boolean whether this call reads no other job
function M.save_raw(id, key, raw, is_only)
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = key, raw
  if not is_only then
    open[id] = raw
  end
end

---@return boolean whether this call has read the job
function M.is_open(id)
  return open[id] ~= nil
end

--- Buffers the job's record for the next flush.
function M.save(job)
  if removed[job[M.ID]] then
    return
  end
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.JOB .. job[M.ID], M.encode(job)
end

---@return table options a copy, which may be changed and put into the job
function M.copy_options(job)
  return job[M.OPTIONS] == "" and {} or cmsgpack.unpack(job[M.OPTIONS])
end

--- The job's rare fields. Read-only.
function M.options(job)
  local rest = job[M.REST]
  if not rest or rest[6] ~= job[M.OPTIONS] then
    return M.copy_options(job)
  end
  if not rest[DECODED_OPTIONS] then
    rest[DECODED_OPTIONS] = M.copy_options(job)
  end
  return rest[DECODED_OPTIONS]
end

--- Whether anything but its queue may refer to it: a waiter for its end, a registered worker, lanes, or its options.
---@return boolean
function M.has_ties(job)
  return job[M.OPTIONS] ~= "" or job[M.FLAGS] % (2 * M.AWAITED) >= M.AWAITED or job[M.FLAGS] >= M.HELD
end

---@return boolean
function M.has(job, flag)
  return job[M.FLAGS] % (flag + flag) >= flag
end

function M.set(job, flag)
  if not M.has(job, flag) then
    job[M.FLAGS] = job[M.FLAGS] + flag
  end
end

function M.clear(job, flag)
  if M.has(job, flag) then
    job[M.FLAGS] = job[M.FLAGS] - flag
  end
end

---@return number created_ms the time in its id
function M.created_ms(id)
  local number = tonumber(#id == 14 and id or id:sub(1, 14), 16)
  return (number - number % 1024) / 1024
end

return M
