---@lazy
-- Since when a queue's oldest ready job waits. When a job became ready stands in its record alone, but never before
-- the moment in its id; and jobs that wait stand in order of id within a priority. So the first of a priority that is
-- younger than the oldest known ends the look there, mostly after one record. Jobs that constraints hold stand in the
-- same set as those of other lanes.
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- Of each of a queue's two sets, so many jobs and priorities are looked at, the worst priority first: there jobs wait
-- longest.
local MOST = 100
local CHUNK = 20
local READY = { states.QUEUED, states.IN_LANE }

--- Since when a job that waits for a worker does.
---@return number ms
local function since(job)
  local created_ms = jobs.created_ms(job[jobs.ID])
  local ready_ms = job[jobs.ATTEMPT] > 0 and job[jobs.ENDED_MS] or job[jobs.OPTIONS] ~= "" and jobs.given(job).ready_ms
  return math.max(created_ms, ready_ms or created_ms)
end

--- The oldest of jobs of one priority and what is known.
---@param oldest number ms
---@param most number how many to look at
---@return number oldest
---@return number looked at
---@return table? job if it is one of these
local function of_priority(key, priority, oldest, most)
  local looked, oldest_job = 0, nil
  while looked < most and budget.is_left() do
    local size = math.min(looked == 0 and 1 or CHUNK, most - looked)
    local ids = call("ZRANGE", key, priority, priority, "BYSCORE", "LIMIT", looked, size)
    local wanted = {}
    for i, id in ipairs(ids) do
      wanted[i] = keys.JOB .. id
    end
    local raws = wanted[1] and call("MGET", unpack(wanted)) or {}
    for i, id in ipairs(ids) do
      if jobs.created_ms(id) >= oldest then
        return oldest, looked + i, oldest_job
      end
      local job = jobs.note(id, raws[i])
      local since_ms = job and since(job)
      if job and since_ms < oldest then
        oldest, oldest_job = since_ms, job
      end
    end
    budget.pay(#ids * budget.LOOK)
    looked = looked + #ids
    if #ids < size then
      break
    end
  end
  return oldest, looked, oldest_job
end

---@param queue table queue
---@return number? ms nil when no job is ready
---@return table? job that one
function M.since(queue)
  local oldest, oldest_job = math.huge, nil
  for _, state in ipairs(READY) do
    local key, left = queues.key(queue, state), MOST
    local priority = call("ZRANGE", key, 0, 0, "REV", "WITHSCORES")[2]
    while priority and left > 0 do
      local looked, job
      oldest, looked, job = of_priority(key, priority, oldest, left)
      oldest_job = job or oldest_job
      left = left - looked - 1
      priority = call("ZRANGE", key, "(" .. priority, "-inf", "BYSCORE", "REV", "LIMIT", 0, 1, "WITHSCORES")[2]
    end
  end
  return oldest < math.huge and oldest or nil, oldest_job
end

return M
