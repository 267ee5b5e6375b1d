-- Jobs that failed for good, by group: the worker's name for the failure, or else the reason.
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local jobs = require "jqlua.job.jobs"
local queues = require "jqlua.queue.queues"

local M = {}

local call = redis.call

---@param raw string|false its rarely needed fields, as stored
---@return string
function M.group_of(raw)
  local extra = raw and cmsgpack.unpack(raw) or {}
  return extra.g or extra.r or "other"
end

--- Adds a job that failed for good. Retention then knows that indexes may hold jobs of its queue.
---@param group string
function M.enter(job, group, ended_ms)
  queues.set(queues.load(job[jobs.QUEUE]), queues.INDEXED)
  call("ZADD", keys.FAILED .. group, ended_ms, job[jobs.ID])
  call("ZADD", keys.FAILED_GROUPS, "0", group)
end

--- What a group has: how many jobs, since when, and what the newest is and says.
---@return table? shown nil if it has no jobs
function M.look(group)
  local key = keys.FAILED .. group
  local first, last = call("ZRANGE", key, "0", "0", "WITHSCORES"), call("ZRANGE", key, "-1", "-1", "WITHSCORES")
  local job = last[1] and jobs.read(last[1])
  if job then
    local raw = call("GET", keys.EXTRA .. last[1])
    budget.pay(budget.of_bytes(raw or ""))
    return {
      group = group, count = call("ZCARD", key), first_ms = tonumber(first[2]), last_ms = tonumber(last[2]),
      id = last[1], name = job[jobs.NAME], queue = job[jobs.QUEUE], message = raw and cmsgpack.unpack(raw).m or "",
    }
  end
end

--- Removes jobs whose records go.
---@param ids string[]
function M.remove(group, ids)
  call("ZREM", keys.FAILED .. group, unpack(ids))
  if call("EXISTS", keys.FAILED .. group) == 0 then
    call("ZREM", keys.FAILED_GROUPS, group)
  end
end

--- Removes a job that leaves state error.
function M.leave(job)
  M.remove(M.group_of(call("GET", keys.EXTRA .. job[jobs.ID])), { job[jobs.ID] })
end

return M
