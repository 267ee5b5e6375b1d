---@lazy
-- Which jobs failed for good, by group: what the worker called it, or else the reason.
local keys = require "jqlua.base.keys"
local jobs = require "jqlua.job.jobs"
local queues = require "jqlua.queue.queues"

local M = {}

local call = redis.call

---@param raw string|false its rarely needed facts, as stored
---@return string
function M.group_of(raw)
  local extra = raw and cmsgpack.unpack(raw) or {}
  return extra.g or extra.r or "other"
end

--- A job failed for good. Jobs of its queue may stand in indexes from now on (retention looks at that).
---@param job table job
---@param group string
function M.enter(job, group, ended_ms)
  queues.set(queues.load(job[jobs.QUEUE]), queues.INDEXED)
  call("ZADD", keys.FAILED .. group, ended_ms, job[jobs.ID])
  call("ZADD", keys.FAILED_GROUPS, 0, group)
end

--- Jobs of a group are not there any more.
---@param ids string[]
function M.remove(group, ids)
  call("ZREM", keys.FAILED .. group, unpack(ids))
  if call("EXISTS", keys.FAILED .. group) == 0 then
    call("ZREM", keys.FAILED_GROUPS, group)
  end
end

--- A job that failed for good does something else from now on.
---@param job table job
function M.leave(job)
  M.remove(M.group_of(call("GET", keys.EXTRA .. job[jobs.ID])), { job[jobs.ID] })
end

return M
