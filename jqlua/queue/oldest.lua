-- Since when a queue's oldest ready job has been ready. Only a job's record says when it became ready, but not before
-- the time in its id; and waiting jobs are in order of id within a priority. So the first of a priority that is younger
-- than the oldest known ends the search there, mostly after one record. Jobs that constraints hold are in the same set
-- as those of other lanes.
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- So many jobs and priorities of each of a queue's two sets are read, the worst priority first: there jobs wait
-- longest.
local MOST = 100
local CHUNK = 20
local READY = { states.QUEUED, states.IN_LANE }

--- Since when a job has been ready.
---@return number ms
local function since(job)
  local created_ms = jobs.created_ms(job[jobs.ID])
  local ready_ms = job[jobs.ATTEMPT] > 0 and job[jobs.ENDED_MS]
    or job[jobs.OPTIONS] ~= "" and jobs.options(job).ready_ms
  return math.max(created_ms, ready_ms or created_ms)
end

--- The oldest of the jobs of one priority and the oldest so far.
---@param oldest number ms
---@param most number how many to read
---@return number oldest
---@return number looked how many were read
---@return table? job if it is one of these
local function of_priority(key, priority, oldest, most)
  local looked, oldest_job = 0, nil
  while looked < most and budget.is_left() do
    local size = math.min(looked == 0 and 1 or CHUNK, most - looked)
    local ids = call("ZRANGE", key, priority, priority, "BYSCORE", "LIMIT", looked, size)
    jobs.fetch(ids)
    for i, id in ipairs(ids) do
      if jobs.created_ms(id) >= oldest then
        return oldest, looked + i, oldest_job
      end
      local job = jobs.read(id)
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

---@return number? ms not after now; nil when no job is ready
---@return table? job that one
function M.since(queue)
  local oldest, oldest_job = math.huge, nil
  for _, state in ipairs(READY) do
    local key, left = queues.key(queue, state), MOST
    local priority = call("ZRANGE", key, "0", "0", "REV", "WITHSCORES")[2]
    while priority and left > 0 do
      local looked, job
      oldest, looked, job = of_priority(key, priority, oldest, left)
      oldest_job = job or oldest_job
      left = left - looked - 1
      priority = call("ZRANGE", key, "(" .. priority, "-inf", "BYSCORE", "REV", "LIMIT", 0, 1, "WITHSCORES")[2]
    end
  end
  -- Ids may be ahead of the clock: after a failover, and after it was set back.
  return oldest_job and math.min(oldest, meta.state[meta.NOW_MS]), oldest_job
end

return M
