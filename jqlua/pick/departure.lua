-- What becomes of a registered worker's jobs when it goes.
local keys = require "jqlua.base.keys"
local budget = require "jqlua.job.budget"
local batch = require "jqlua.base.batch"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local workers = require "jqlua.pick.workers"
local failure = require "jqlua.life.failure"
local attempts = require "jqlua.life.attempts"

local M = {}

local call = redis.call

---@param limit? number how many at most, as far as the call's budget goes; nil: all
---@return number moved
local function each_held(id, limit, what)
  local held = call("ZRANGE", keys.HELD .. id, 0, (limit or 0) - 1)
  local moved = 0
  for _, job_id in ipairs(held) do
    local job = jobs.read(job_id)
    if job and job[jobs.STATE] == states.RUNNING then
      what(job)
    else
      call("ZREM", keys.HELD .. id, job_id)
      job = nil
    end
    moved = moved + 1
    if limit and not budget.pay(job and budget.of_job(job) or budget.LOOK) then
      break
    end
  end
  batch.flush()
  return moved
end

--- Its jobs fail with reason timeout: the attempt was spent.
---@param limit? number as of each_held
---@return number moved
function M.jobs_fail(id, message, limit)
  return each_held(id, limit, function(job)
    failure.fail(job, jobs.LAPSED, { reason = "timeout", message = message })
  end)
end

--- Its jobs go back to their queues; no attempt is spent.
---@return number moved
function M.jobs_back(id)
  return each_held(id, nil, function(job)
    attempts.give_back(job, 0)
  end)
end

--- Takes the worker's own records away; it holds nothing any more.
function M.forget(id)
  local record = workers.load(id)
  if record then
    workers.leave(id, record)
    if record.u and call("HGET", keys.URLS, record.u) == id then
      call("HDEL", keys.URLS, record.u)
    end
  end
  call("HDEL", keys.WORKERS, id)
  call("ZREM", keys.WORKER_IDS, id)
  call("ZREM", keys.ALIVE, id)
  call("ZREM", keys.RESTING, id)
  call("DEL", keys.HELD .. id)
end

return M
