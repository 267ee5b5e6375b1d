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
-- So many ids of jobs that a dead worker lost are kept.
local MOST_LOST = 20

---@return table? worker {n name, q queues, m max_jobs, h host, i pid, v version, j names of jobs, t seen_ms,
--- s since_ms, r ids of jobs that it said it runs, f names of jobs that it refuses, g whether it was registered and
--- died, l lapsed, x ids of jobs that it lost then}
function M.load(id)
  local raw = call("HGET", keys.OTHERS, id)
  local worker = raw and cmsgpack.unpack(raw)
  return worker and worker.t >= meta.state[meta.NOW_MS] - KEPT_MS and worker or nil
end

function M.forget(id)
  call("HDEL", keys.OTHERS, id)
  call("ZREM", keys.OTHER_IDS, id)
  call("ZREM", keys.OTHERS_SEEN, id)
end

local function drop_old()
  for _, id in ipairs(call("ZRANGEBYSCORE", keys.OTHERS_SEEN, "-inf", "(" .. meta.state[meta.NOW_MS] - KEPT_MS, "LIMIT",
    0, DROPPED)) do
    M.forget(id)
  end
  if call("ZCARD", keys.OTHERS_SEEN) > MOST then
    M.forget(call("ZRANGE", keys.OTHERS_SEEN, 0, 0)[1])
  end
end

local function save(id, worker)
  call("HSET", keys.OTHERS, id, cmsgpack.pack(worker))
  call("ZADD", keys.OTHER_IDS, 0, id)
  call("ZADD", keys.OTHERS_SEEN, worker.t, id)
  drop_old()
end

--- Records a worker that announces itself, and the jobs it runs.
---@param worker table record, without its times
function M.announce(worker, running)
  local before = M.load(worker.n)
  worker.t = meta.state[meta.NOW_MS]
  worker.s = before and before.t > worker.t - SILENT_MS and before.s or worker.t
  worker.r = running
  save(worker.n, worker)
end

--- Workers that announced themselves and are not gone.
---@return table[] records
function M.present()
  local present = {}
  for _, id in ipairs(call("ZRANGEBYSCORE", keys.OTHERS_SEEN, "(" .. meta.state[meta.NOW_MS] - SILENT_MS, "+inf")) do
    budget.pay(budget.LOOK)
    local worker = M.load(id)
    if worker and not worker.g then
      present[#present + 1] = worker
    end
  end
  return present
end

--- Ids of the first jobs that a worker is about to lose.
function M.lost(id)
  return call("ZRANGE", keys.HELD .. id, 0, MOST_LOST - 1)
end

--- Records a registered worker that died.
---@param record table as workers.load returns it
function M.died(id, record)
  save(id, {
    n = record.n, q = record.q, m = record.m, h = record.h, i = record.i, v = record.v, j = record.j, g = true,
    t = tonumber(call("ZSCORE", keys.ALIVE, id)), s = jobs.created_ms(id:sub(2)), l = record.l, x = record.x,
  })
end

--- The jobs that it reported as running and still runs: {{id, started_ms}, ...}.
local function running_of(worker)
  local shown = {}
  for _, id in ipairs(worker.r or {}) do
    local job = jobs.read(id)
    budget.pay(budget.LOOK)
    if job and job[jobs.STATE] == states.RUNNING and job[jobs.WORKER] == worker.n then
      shown[#shown + 1] = { id, job[jobs.STARTED_MS] }
    end
  end
  return shown
end

---@return table? fields
function M.document(id)
  local worker = M.load(id)
  if not worker then
    return nil
  end
  local running = running_of(worker)
  return {
    id = id, name = worker.n, queues = worker.q, max_jobs = worker.m, held = #running, running = running,
    seen_ms = worker.t, since_ms = worker.s, refused = worker.f or {}, lapsed = worker.l or 0, request = "",
    host = worker.h, pid = worker.i, version = worker.v, knows = worker.j, lost = worker.x,
    state = (worker.g or worker.t <= meta.state[meta.NOW_MS] - SILENT_MS) and "gone" or "pulling",
  }
end

return M
