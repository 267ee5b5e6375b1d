-- Handles the jobs of a registered worker that leaves or died.
local keys = require "jqlua.base.keys"
local budget = require "jqlua.job.budget"
local batch = require "jqlua.base.batch"
local due = require "jqlua.base.due"
local meta = require "jqlua.base.meta"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local workers = require "jqlua.workers.workers"
local failure = require "jqlua.life.failure"
local attempts = require "jqlua.life.attempts"

local M = {}

local call = redis.call

---@param limit? number at most so many, within the call's budget; nil: all
---@return number count
local function each_held(id, limit, what)
  local held = call("ZRANGE", keys.HELD .. id, "0", (limit or 0) - 1)
  local count = 0
  for _, job_id in ipairs(held) do
    local job = jobs.read(job_id)
    if job and job[jobs.STATE] == states.RUNNING then
      what(job)
    else
      call("ZREM", keys.HELD .. id, job_id)
      job = nil
    end
    count = count + 1
    if limit and not budget.pay(job and budget.of_job(job) or budget.LOOK) then
      break
    end
  end
  batch.flush()
  return count
end

--- Fails its jobs with reason timeout; the attempts count.
---@param limit? number as of each_held
---@return number count
function M.jobs_fail(id, message, limit)
  return each_held(id, limit, function(job)
    failure.fail(job, jobs.LAPSED, { reason = "timeout", message = message })
  end)
end

--- Returns its jobs to their queues; the attempts do not count.
---@return number count
function M.jobs_back(id)
  return each_held(id, nil, function(job)
    attempts.release(job, 0)
  end)
end

--- Removes the records of a worker that holds no jobs.
function M.forget(id)
  local record = workers.load(id)
  if record then
    workers.leave(id, record)
    if record.u and call("HGET", keys.URLS, record.u) == id then
      call("HDEL", keys.URLS, record.u)
    end
  end
  workers.forget(id)
  call("ZREM", keys.WORKER_IDS, id)
  call("ZREM", keys.ALIVE, id)
  due.set(due.RESTING .. id, meta.NONE)
  call("DEL", keys.HELD .. id, keys.NAMED .. id)
end

return M
