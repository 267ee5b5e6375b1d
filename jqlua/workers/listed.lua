-- Workers that are listed without being registered: those that pull and announce themselves regularly, and for an hour
-- those that died, registered or not. The list is for people; nothing depends on it. It is bounded by age and by
-- number.
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- A worker that was silent for so long is gone: three times the interval of the library's workers.
local SILENT_MS = 180000
local KEPT_MS = 3600000
local MOST = 1000
local DROPPED = 10 -- at most, by one call

---@return table? record as workers.load gives it, and t seen_ms, b since_ms, o ids of jobs that it said it runs, d
--- whether it was registered and died
function M.load(id)
  local raw = call("HGET", keys.LISTED, id)
  local record = raw and cmsgpack.unpack(raw)
  return record and record.t >= meta.state[meta.NOW_MS] - KEPT_MS and record or nil
end

---@return boolean
function M.is_gone(record)
  return record.d or record.t <= meta.state[meta.NOW_MS] - SILENT_MS
end

function M.forget(id)
  call("HDEL", keys.LISTED, id)
  call("ZREM", keys.WORKER_IDS, id)
  call("ZREM", keys.LISTED_SEEN, id)
end

local function save(id, record)
  call("HSET", keys.LISTED, id, cmsgpack.pack(record))
  call("ZADD", keys.WORKER_IDS, 0, id)
  call("ZADD", keys.LISTED_SEEN, record.t, id)
  local too_old = "(" .. meta.state[meta.NOW_MS] - KEPT_MS
  for _, other_id in ipairs(call("ZRANGEBYSCORE", keys.LISTED_SEEN, "-inf", too_old, "LIMIT", 0, DROPPED)) do
    M.forget(other_id)
  end
  if call("ZCARD", keys.LISTED_SEEN) > MOST then
    M.forget(call("ZRANGE", keys.LISTED_SEEN, 0, 0)[1])
  end
end

--- Records a worker that announces itself, and the jobs it runs.
---@param record table without its times
function M.announce(record, running)
  local before = M.load(record.n)
  record.t, record.o = meta.state[meta.NOW_MS], running
  record.b = before and not M.is_gone(before) and before.b or record.t
  save(record.n, record)
end

--- Records a registered worker that died.
---@param record table a copy
---@param seen_ms number
function M.died(id, record, seen_ms)
  record.d, record.t, record.b, record.s, record.k = true, seen_ms, jobs.created_ms(id:sub(2)), nil, nil
  save(id, record)
end

--- The jobs that it reported as running and still runs: {{id, started_ms}, ...}.
function M.running(record)
  local running = {}
  for _, id in ipairs(record.o or {}) do
    local job = jobs.read(id)
    budget.pay(budget.LOOK)
    if job and job[jobs.STATE] == states.RUNNING and job[jobs.WORKER] == record.n then
      running[#running + 1] = { id, job[jobs.STARTED_MS] }
    end
  end
  return running
end

return M
