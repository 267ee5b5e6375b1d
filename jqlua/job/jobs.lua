-- A job's record: one short string beside its argument, which is never rewritten. Its head is written anew by each step
-- of the job's life; its tail hardly ever changes. Jobs under constraints or in fair queues have a section of units at
-- the end (module limits.job_units). In a script a job is a list of the fields below.
local keys = require "jqlua.base.keys"
local batch = require "jqlua.base.batch"
local memory = require "jqlua.base.memory"

local M = {}

M.FLAGS = 1
M.STATE = 2 -- module job.states
M.HOW = 3 -- how the last finished attempt ended, see below
M.ATTEMPT = 4
M.FAILURES = 5
M.STARTED_MS = 6
M.ENDED_MS = 7
M.RANDOM = 8 -- digits of the last token
M.WORKER = 9 -- that ran it last
M.BYTES = 10 -- the tail of the record, which says the fields from NAME on; false when one of them changed
M.ID = 11
M.NAME = 12
M.QUEUE = 13
M.PRIORITY = 14
M.MAX_RETRY = 15
M.TIMEOUT_MS = 16
M.OPTIONS = 17 -- MessagePack map of rare fields, or empty
M.UNITS = 18 -- section of units, or empty

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
M.STARTED = 2 -- has a whole head
M.HAS_OUTCOME = 4 -- keys.OUTCOME exists
M.HAS_EXTRA = 8 -- keys.EXTRA exists
M.TIED = 16 -- the first of those that say that others than its queue refer to it
M.AWAITED = 16 -- a watcher waits for its end, or jobs depend on it or read its result
M.HELD = 32 -- takes a slot of a worker that is pushed to
M.READ = 64 -- its result was read
M.LANED = 128 -- has a section of units

-- The head of a job that never started is short: most waiting jobs are such, and memory is what they cost.
local NEVER_STARTED = ">Bc1c0"
local TAIL_OF_NEVER_STARTED = 3 -- where it begins
local STARTED = ">Bc1c1I4I4ddc12s" -- fields FLAGS to WORKER
local WHOLE = ">Bc1c1I4I4ddc12sc0" -- and BYTES
local FIELDS_OF_TAIL = 6 -- MessagePack, of which most numbers and short texts take few bytes; its units are behind them
local MOST_FETCHED = 1000 -- in one command

-- Jobs this call has read, by id, or the records that it has made for them; by their keys false for those it removes.
local open = {}

-- Decoded tails of records, by their bytes: a job's fields from NAME on, and those below.
local tails = KEPT

-- Jobs that never started, without an id, by their records: many have the same.
local unstarted = KEPT

-- The last record of a job that started, and, if it came twice, the job, without an id: those that one call started
-- are often alike.
local latest = { "", false }

local UNITS_OF_TAIL = 7
local WORKER_FIELDS = 8 -- of a worker's document
local HEAD = 9

local function decode_tail(bytes)
  local at, name, queue, priority, max_retry, timeout_ms, options = cmsgpack.unpack_limit(bytes, FIELDS_OF_TAIL)
  return memory.keep(tails, bytes, {
    name, queue == "" and name or queue, priority, max_retry, timeout_ms, options, at < 0 and "" or bytes:sub(at + 1),
    false, false,
  })
end

---@param raw string
---@return table job
function M.decode(id, raw)
  local known = unstarted[raw] or raw == latest[1] and latest[2]
  if not known and raw:byte() % 4 < M.STARTED then
    local bytes = raw:sub(TAIL_OF_NEVER_STARTED)
    local tail = tails[bytes] or decode_tail(bytes)
    known = memory.keep(unstarted, raw, {
      raw:byte(), raw:sub(2, 2), M.NOT_YET, 0, 0, 0, 0, "", "", bytes, "", unpack(tail, 1, UNITS_OF_TAIL),
    })
  end
  if known then
    local job = { unpack(known, 1, M.UNITS) }
    job[M.ID] = id
    return job
  end
  local flags, state, how, attempt, failures, started_ms, ended_ms, random, worker, after = struct.unpack(STARTED, raw)
  local bytes = raw:sub(after)
  local tail = tails[bytes] or decode_tail(bytes)
  local job = {
    flags, state, how, attempt, failures, started_ms, ended_ms, random, worker, bytes, id,
    unpack(tail, 1, UNITS_OF_TAIL),
  }
  latest[2] = raw == latest[1] and { unpack(job, 1, M.UNITS) }
  latest[1] = raw
  return job
end

---@param options string packed
---@return table job that never ran, without an id
function M.new(flags, state, name, queue, priority, max_retry, timeout_ms, options)
  return {
    flags, state, M.NOT_YET, 0, 0, 0, 0, "", "", false, "", name, queue, priority, max_retry, timeout_ms, options, "",
  }
end

--- Like read, from a record that was read with others.
---@param raw string|false
---@return table? job
function M.from_record(id, raw)
  local job = open[id]
  if not job or type(job) == "string" then
    raw = job or raw
    job = raw and M.decode(id, raw) or nil
    open[id] = job
  end
  return job
end

---@return table? job nil if there is none
function M.read(id)
  return M.from_record(id, not open[id] and redis.call("GET", keys.JOB .. id))
end

--- Reads many records with one command, for callers that then look at one after the other.
---@param ids string[]
function M.fetch(ids)
  for first = 1, #ids, MOST_FETCHED do
    local last, names = math.min(first + MOST_FETCHED - 1, #ids), {}
    for i = first, last do
      names[#names + 1] = keys.JOB .. ids[i]
    end
    for i, raw in ipairs(redis.call("MGET", unpack(names))) do
      M.from_record(ids[first + i - 1], raw)
    end
  end
end

--- Notes that this call removes the job's record. It can still be read, so that one that is named twice gets the same
--- answer; but it is not written again.
function M.note_removal(id)
  open[keys.JOB .. id] = false
end

--- Writes a new job.
---@param record string
---@param argument string
function M.create(id, record, argument)
  open[id] = record
  batch.write(keys.JOB .. id, record, keys.ARGUMENT .. id, argument)
end

--- Changes a field of the tail, other than its units.
---@param field number
function M.put(job, field, value)
  job[field], job[M.BYTES] = value, false
end

---@param units string section, or ""
function M.put_units(job, units)
  local bytes = job[M.BYTES]
  job[M.BYTES], job[M.UNITS] = bytes and bytes:sub(1, -1 - #job[M.UNITS]) .. units, units
end

---@param options table the job's rare fields
function M.set_options(job, options)
  M.put(job, M.OPTIONS, next(options) and cmsgpack.pack(options) or "")
end

---@return string record
function M.encode(job)
  if not job[M.BYTES] then
    local name, queue = job[M.NAME], job[M.QUEUE]
    job[M.BYTES] = cmsgpack.pack(name, queue == name and "" or queue, job[M.PRIORITY], job[M.MAX_RETRY],
      job[M.TIMEOUT_MS], job[M.OPTIONS]) .. job[M.UNITS]
  end
  if job[M.FLAGS] % 4 < M.STARTED then
    return struct.pack(NEVER_STARTED, job[M.FLAGS], job[M.STATE], job[M.BYTES])
  end
  return struct.pack(WHOLE, unpack(job, M.FLAGS, M.BYTES))
end

-- Rare fields that workers are sent. fields.py: told
local TOLD_OPTIONS = { "max_runtime", "depends", "headers", "schedule", "schedule_ms", "webhook" }
-- end of told

--- The part of a worker's document that is the same at each start, and the map's head. Numbers have their widest form.
---@return string fields
---@return string head
local function worker_fields(tail)
  local name, queue = tail[1], tail[2]
  local count = 8
  local fields = "\164name\217" .. string.char(#name) .. name .. "\165queue\217" .. string.char(#queue) .. queue
    .. struct.pack(">c10i4c9d", "\168priority\210", tail[3], "\167timeout\203", tail[5] / 1000)
  if tail[6] ~= "" then
    local options = cmsgpack.unpack(tail[6])
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
  return (attempt == 1 and "1-" or attempt .. "-") .. job[M.RANDOM]
end

-- The last numbers of an attempt and of failures that were packed, and what came of them: [3] goes up to the digits
-- of the token, which are the document's end.
local numbers = { 0, 0, "" }

---@param job table started, its record saved
---@param id string its own, or that of a job like it
---@return string document for its worker
function M.document(job, id)
  local bytes, attempt, failures = job[M.BYTES], job[M.ATTEMPT], job[M.FAILURES]
  local tail = tails[bytes] or decode_tail(bytes)
  if not tail[WORKER_FIELDS] then
    tail[WORKER_FIELDS], tail[HEAD] = worker_fields(tail)
  end
  if attempt ~= numbers[1] or failures ~= numbers[2] then
    local begin = attempt .. "-"
    numbers[1], numbers[2], numbers[3] = attempt, failures, struct.pack(">c9I4c13I4c7B", "\167attempt\206", attempt,
      "\171retry_count\206", failures, "\165token\217", #begin + #job[M.RANDOM]) .. begin
  end
  return tail[HEAD] .. (#id == 14 and "\162id\174" or "\162id\176") .. id .. tail[WORKER_FIELDS] .. numbers[3]
    .. job[M.RANDOM]
end

--- Buffers the record of jobs that are alike for the next flush.
---@param ids string[] id, anything, id, anything, ...
---@param first number index of the first in it
---@param last number
function M.save_all(job, ids, first, last)
  local record = M.encode(job)
  for i = first, last, 2 do
    local key = keys.JOB .. ids[i]
    if open[key] ~= false then
      batch.write(key, record)
    end
    if i > first then
      open[ids[i]] = record
    end
  end
end

--- Buffers the job's record for the next flush.
function M.save(job)
  M.save_all(job, { job[M.ID] }, 1, 1)
end

--- Marks a job as one whose end or result is waited for.
function M.await(job)
  if not M.has(job, M.AWAITED) then
    M.set(job, M.AWAITED)
    M.save(job)
  end
end

-- Decoded options, by their bytes.
local known_options = KEPT

---@return table options a copy, which may be changed and put into the job
function M.copy_options(job)
  return job[M.OPTIONS] == "" and {} or cmsgpack.unpack(job[M.OPTIONS])
end

--- The job's rare fields. Read-only.
function M.options(job)
  local bytes = job[M.OPTIONS]
  return known_options[bytes] or memory.keep(known_options, bytes, M.copy_options(job))
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
