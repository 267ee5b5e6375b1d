---@lazy
-- Whose results are wanted: of a job that keeps its result, those that depend on it and have not ended. As long as
-- there is one, the result stays; if its time is over meanwhile it is held, and goes when the last of them has ended.
local awaited = require "jqlua.job.awaited"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

--- The score, in the set of kept results, of one that is held: later than all moments.
M.HELD = 2 ^ 53

--- Whether there is one. Who has none, as a rule, is not asked for.
---@param job table
---@return boolean
function M.any(job)
  return jobs.has(job, jobs.AWAITED) and call("EXISTS", keys.READERS .. job[jobs.ID]) == 1
end

--- Until when a result is kept, as far as that is written yet.
local function until_ms(other)
  return tonumber(call("ZSCORE", queues.key(queues.load(other[jobs.QUEUE]), states.KEPT), other[jobs.ID]) or nil)
end

--- Whether a job has a result that can still be read, or may come to have one.
local function may_be_read(other)
  if not jobs.has(other, jobs.KEEP_RESULT) or other[jobs.STATE] == states.DONE then
    return false
  end
  local at_ms = other[jobs.STATE] == states.KEPT and until_ms(other)
  return not at_ms or at_ms > meta.state[meta.NOW_MS] or M.any(other)
end

--- A job depends on others from now on, and has not ended.
---@param depends string[] ids
function M.enter(id, depends)
  for _, other_id in ipairs(depends) do
    local other = jobs.read(other_id)
    if other and may_be_read(other) then
      call("ZADD", keys.READERS .. other_id, 0, id)
      awaited.note(other)
    end
  end
end

--- A job does not want another's result any more.
local function leave_one(id, other_id)
  local other = call("ZREM", keys.READERS .. other_id, id) == 1 and jobs.read(other_id)
  local at_ms = other and not M.any(other) and other[jobs.STATE] == states.KEPT and until_ms(other)
  local now = meta.state[meta.NOW_MS]
  if at_ms and (at_ms <= now or at_ms == M.HELD) then
    local queue = queues.load(other[jobs.QUEUE])
    batch.add(queues.key(queue, states.KEPT), now, other_id)
    queues.note_due(queue, queues.DUE_ENDED, now)
  end
end

--- A job ended, or does not depend on these any more.
---@param depends string[] ids
function M.leave(id, depends)
  budget.pay(budget.LOOK * #depends)
  awaited.fetch(depends)
  for _, other_id in ipairs(depends) do
    leave_one(id, other_id)
  end
end

return M
