-- Registered workers: their records, and the room of those that are pushed to. Such a worker stands in its pool's set,
-- ordered by load, exactly while it may get another job: it holds fewer than max_jobs, does not rest and was not asked
-- to be quiet. Who could not be reached, or let a lease run out, rests, each time in a row twice as long, and is then
-- tried with one job at a time until it finishes one. Workers with the same queues, refused names and key share a pool,
-- so that dispatch reads pools and not workers.
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local keys = require "jqlua.base.keys"
local memory = require "jqlua.base.memory"
local meta = require "jqlua.base.meta"
local due = require "jqlua.base.due"
local settings = require "jqlua.settings.settings"
local sleepers = require "jqlua.workers.sleepers"

local M = {}

local call = redis.call

--- The channel on which servers sleep.
M.CHANNEL = "push"

--- Whether a worker's name has the form of a registered worker's id.
function M.is_id(name)
  return (#name == 15 or #name == 17) and string.find(name, "^w[0-9a-f]+$") ~= nil
end

-- Decoded records, by their bytes.
local known = KEPT

-- Records that this call has read, or false.
local open = {}
local FAILURES = 5 -- in a row; then no sign of life ends a worker's rests
local MOST_REST_S = 300
-- So soon after a sign of life picks and finishes write no other.
local APART_MS = 1000

local MOST_RUNNING = 100
local NOTHING = "\144" -- an empty list
-- So long what is listed is kept, and what workers said of their jobs.
local KEPT_MS = 3600000

---@return table? record not to be changed (see edit): {n name, q queues, u url, m max_jobs, r refused names, p pool,
--- w why it rests, f how often in a row it failed, k what was asked of it (quiet, stop), l how many of its attempts
--- timed out, s secrets with a blank between, a id of the key that it was registered with, h host, i pid, v version, j
--- names of the jobs that it knows, x ids of jobs that it is about to lose, t its last sign of life, as in keys.ALIVE}
function M.load(id)
  local record = open[id]
  if record == nil then
    local raw = call("GET", keys.WORKER .. id)
    record = raw and (known[raw] or memory.keep(known, raw, cmsgpack.unpack(raw)))
    open[id] = record
  end
  return record or nil
end

--- A copy of a worker's record, to be changed and saved.
---@return table? record
function M.edit(id)
  local record = M.load(id)
  if record then
    local copy = {}
    for field, value in pairs(record) do
      copy[field] = value
    end
    return copy
  end
end

function M.save(id, record)
  open[id] = record
  call("SET", keys.WORKER .. id, cmsgpack.pack(record))
end

function M.forget(id)
  open[id] = false
  call("DEL", keys.WORKER .. id)
end

--- Refuses the call for a worker that is not registered.
---@return table record as of load
function M.registered(id)
  local record = M.load(id)
  check.refuse(not record and check.missing("worker", "registered worker", id))
  return record
end

--- Whether it gets no jobs for a while.
---@return boolean
function M.is_resting(id)
  return due.at(due.RESTING .. id) ~= nil
end

--- How many jobs it may hold: one that failed is tried with a single one.
function M.room(record)
  return record.f and 1 or record.m
end

--- Adds a worker to its pool's set if it has room, or removes it.
function M.place(id, record)
  if not record.u then
    return
  end
  local held = call("ZCARD", keys.HELD .. id)
  if held >= M.room(record) or record.k or M.is_resting(id) then
    call("ZREM", keys.POOL .. record.p, id)
  else
    local was_empty = call("EXISTS", keys.POOL .. record.p) == 0
    call("ZADD", keys.POOL .. record.p, held / record.m, id)
    if was_empty then
      sleepers.wake_channel(M.CHANNEL)
    end
  end
end

--- After the worker got jobs (its held set is written).
function M.took(id)
  local record = M.load(id)
  if record then
    M.place(id, record)
  end
end

--- After a job left the worker.
function M.free(id, job_id)
  call("ZREM", keys.HELD .. id, job_id)
  M.took(id)
end

--- Has a worker get jobs again that was busy or could not be reached.
---@param record table? a copy
function M.end_rest(id, record)
  due.set(due.RESTING .. id, meta.NONE)
  if record then
    record.w = nil
    M.save(id, record)
    M.place(id, record)
  end
end

--- Jobs that a worker runs: of one that is pushed to the first that started, of one that picks those that it named.
---@param is_pushed? any
---@return table[] running {{id, started_ms}, ...}, at most MOST_RUNNING
function M.running(id, is_pushed)
  local ids = is_pushed and call("ZRANGE", keys.HELD .. id, "0", MOST_RUNNING - 1)
    or cmsgpack.unpack(call("GET", keys.NAMED .. id) or NOTHING)
  local running = {}
  for _, job_id in ipairs(ids) do
    local job = jobs.read(job_id)
    budget.pay(budget.LOOK)
    if #running < MOST_RUNNING and job and job[jobs.STATE] == states.RUNNING and job[jobs.WORKER] == id then
      running[#running + 1] = { job_id, job[jobs.STARTED_MS] }
    end
  end
  return running
end

--- Records which jobs a worker that picks runs. It need not name all at a time: what it named before may still run.
---@param named string[] ids
function M.name_jobs(id, named)
  for _, pair in ipairs(M.running(id)) do
    named[#named + 1] = pair[1]
  end
  local ids, is_listed = {}, {}
  for _, job_id in ipairs(named) do
    ids[#ids + 1] = not is_listed[job_id] and job_id or nil
    is_listed[job_id] = true
  end
  call("SET", keys.NAMED .. id, cmsgpack.pack(ids), "EX", KEPT_MS / 1000)
end

--- Records a sign of life: an unreachable worker is reachable again, unless it failed too often.
---@param works? any whether it has finished something, so that its failures are over
function M.seen(id, works)
  local now, record = meta.state[meta.NOW_MS], M.edit(id)
  local has_failed = record.f
  call("ZADD", keys.ALIVE, now, id)
  due.note(due.WORKERS, now + settings.at(settings.WORKER_TTL) * 1000)
  record.t = now
  record.f = not works and record.f or nil
  if record.w == "unreachable" and (record.f or 0) < FAILURES then
    M.end_rest(id, record)
  else
    M.save(id, record)
    if works and has_failed then
      M.place(id, record)
    end
  end
end

--- Records that a worker picked or finished, whose record was read.
---@param works any as of seen; a late outcome is a sign of life, of a worker that may hang again
function M.came_by(id, works)
  local record = open[id]
  local passed_ms = meta.state[meta.NOW_MS] - record.t
  if passed_ms < 0 or passed_ms >= APART_MS or record.w == "unreachable" or record.f and works then
    M.seen(id, works)
  end
end

--- Asks a worker to do something.
---@param record table a copy, as the following
---@param request string quiet, stop or resume
function M.ask(id, record, request)
  record.k = request ~= "resume" and request or nil
  M.save(id, record)
  M.place(id, record)
  if record.k then
    sleepers.leave(id)
  end
  call("SPUBLISH", keys.WORKER_CHANNEL .. id, request)
end

--- Gives this worker no jobs until then.
---@param why string busy or unreachable
function M.rest(id, record, why, until_ms)
  if why == "unreachable" then
    record.f = (record.f or 0) + (record.w == why and 0 or 1)
    until_ms = math.max(until_ms, meta.state[meta.NOW_MS] + 1000 * math.min(2 ^ (record.f - 1), MOST_REST_S),
      record.w == why and due.at(due.RESTING .. id) or 0)
  end
  record.w = why
  M.save(id, record)
  due.put(due.RESTING .. id, until_ms)
  M.place(id, record)
end

--- Adds a worker that is pushed to to its pool, new or changed.
function M.join(id, record)
  table.sort(record.r)
  local definition = cmsgpack.pack(record.q, record.r) .. (record.a or "")
  record.p = redis.sha1hex(definition):sub(1, 16)
  call("HSET", keys.POOLS, record.p, cmsgpack.pack({ q = record.q, r = record.r, a = record.a }))
  call("SADD", keys.POOL_MEMBERS .. record.p, id)
end

function M.leave(id, record)
  if not record.p then
    return
  end
  call("ZREM", keys.POOL .. record.p, id)
  call("SREM", keys.POOL_MEMBERS .. record.p, id)
  if call("EXISTS", keys.POOL_MEMBERS .. record.p) == 0 then
    call("HDEL", keys.POOLS, record.p)
  end
end

--- Records the names without which a worker picks, for display: it does not know them.
---@param names table<string, boolean>
function M.picks_without(id, names)
  local record = M.edit(id)
  if record.u then
    return
  end
  local refused = {}
  for name in pairs(names) do
    refused[#refused + 1] = name
  end
  table.sort(refused)
  if table.concat(refused, "\0") ~= table.concat(record.r, "\0") then
    record.r = refused
    M.save(id, record)
  end
end

--- Records that this worker knows no jobs of a name.
function M.refuse_name(id, record, name)
  for _, refused in ipairs(record.r) do
    if refused == name then
      return
    end
  end
  M.leave(id, record)
  record.r = { name, unpack(record.r) }
  if record.u then
    M.join(id, record)
  end
  M.save(id, record)
end

-- Listed workers ------------------------------------------------------------------------------------------------------

-- Those that pull and announce themselves, and for an hour those that died, registered or not. The list is for people;
-- nothing depends on it. It is bounded by age and by number.

-- A worker that was silent for so long is gone: three times the interval of the library's workers.
local SILENT_MS = 180000
local MOST = 1000
local DROPPED = 10 -- at most, by one call

---@return table? record as load gives it, and b since_ms, d whether it was registered and died
local function load_listed(id)
  local raw = call("HGET", keys.LISTED, id)
  local record = raw and cmsgpack.unpack(raw)
  return record and record.t >= meta.state[meta.NOW_MS] - KEPT_MS and record or nil
end

---@return boolean
function M.is_gone(record)
  return record.d or record.b and record.t <= meta.state[meta.NOW_MS] - SILENT_MS
end

--- The record of a worker that is registered or listed.
function M.find(id)
  return M.load(id) or load_listed(id)
end

function M.forget_listed(id)
  call("DEL", keys.NAMED .. id)
  call("HDEL", keys.LISTED, id)
  call("ZREM", keys.WORKER_IDS, id)
  call("ZREM", keys.LISTED_SEEN, id)
end

local function list(id, record)
  call("HSET", keys.LISTED, id, cmsgpack.pack(record))
  call("ZADD", keys.WORKER_IDS, "0", id)
  call("ZADD", keys.LISTED_SEEN, record.t, id)
  local too_old = "(" .. meta.state[meta.NOW_MS] - KEPT_MS
  for _, other_id in ipairs(call("ZRANGEBYSCORE", keys.LISTED_SEEN, "-inf", too_old, "LIMIT", "0", DROPPED)) do
    M.forget_listed(other_id)
  end
  if call("ZCARD", keys.LISTED_SEEN) > MOST then
    M.forget_listed(call("ZRANGE", keys.LISTED_SEEN, "0", "0")[1])
  end
end

--- Records a worker that announces itself, and the jobs it runs.
---@param record table without its times
function M.announce(record, running)
  local before = load_listed(record.n)
  record.t = meta.state[meta.NOW_MS]
  record.b = before and not M.is_gone(before) and before.b or record.t
  list(record.n, record)
  call("DEL", keys.NAMED .. record.n)
  M.name_jobs(record.n, running or {})
end

--- Notes that a worker lost a job.
---@param record table a copy; the caller saves it
function M.lose(record, job_id)
  record.x = { unpack(record.x or {}) } -- others may have the list
  for _, lost in ipairs(record.x) do
    if lost == job_id then
      return
    end
  end
  record.x[#record.x < MOST_RUNNING and #record.x + 1 or MOST_RUNNING] = job_id
end

--- Counts an attempt that timed out, also of a worker that died before: one that picks has lost the job, one that is
--- pushed to may hang, and is unreachable until it shows a sign of life.
---@param job_id string|false false if the worker said so
function M.lapsed(id, job_id)
  local record = M.edit(id)
  local dead = not record and load_listed(id)
  record = record or dead and dead.d and dead
  if record then
    record.l = (record.l or 0) + 1
    if job_id and record.u and not dead then
      M.rest(id, record, "unreachable", meta.state[meta.NOW_MS] + settings.at(settings.WORKER_TTL) * 1000)
      return
    elseif job_id and not record.u then
      M.lose(record, job_id)
    end
    (dead and list or M.save)(id, record)
  end
end

--- Records a registered worker that died.
---@param record table a copy
function M.died(id, record)
  record.d, record.b, record.s, record.k = true, jobs.created_ms(id:sub(2)), nil, nil
  list(id, record)
end

return M
