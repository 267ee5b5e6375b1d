-- Readers of a kept result: the jobs that depend on its job and have not ended. While there are any, the result stays;
-- if it expires meanwhile it is held, and removed when the last reader has ended.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

--- The score of a held result in the set of kept results: later than any time.
M.HELD = 2 ^ 45

--- Whether a job has readers. Jobs that cannot have any cost no command.
---@return boolean
function M.any(job)
  return jobs.has(job, jobs.AWAITED) and call("EXISTS", keys.READERS .. job[jobs.ID]) == 1
end

--- Until when a job's result is kept; nil where it has none, or that is not written yet: then the job still stands in
--- the band of those that run.
local function kept_until(other)
  local at_ms = other[jobs.STATE] == states.KEPT and members.score(other)
  return at_ms and at_ms >= 0 and at_ms or nil
end

--- Whether a job has, or may yet have, a result that can be read.
local function may_be_read(other)
  if not jobs.has(other, jobs.KEEP_RESULT) or other[jobs.STATE] == states.DONE then
    return false
  end
  local at_ms = kept_until(other)
  return not at_ms or at_ms > meta.state[meta.NOW_MS] or M.any(other)
end

--- Adds a job, which has not ended, as a reader of others.
---@param depends string[] ids
function M.enter(id, depends)
  for _, other_id in ipairs(depends) do
    local other = jobs.read(other_id)
    if other and may_be_read(other) then
      call("ZADD", keys.READERS .. other_id, "0", id)
      jobs.await(other)
    end
  end
end

--- Removes a reader.
local function leave_one(id, other_id)
  local other = call("ZREM", keys.READERS .. other_id, id) == 1 and jobs.read(other_id)
  local at_ms = other and not M.any(other) and kept_until(other)
  local now = meta.state[meta.NOW_MS]
  if at_ms and (at_ms <= now or at_ms == M.HELD) then
    local queue = queues.load(other[jobs.QUEUE])
    members.add(queue, states.KEPT, now, other_id)
    queues.note_due(queue, queues.DUE_ENDED, now)
  end
end

--- Removes a job as a reader of others, when it ended or no longer depends on them.
---@param depends string[] ids
function M.leave(id, depends)
  budget.pay(budget.LOOK * #depends)
  jobs.fetch(depends)
  for _, other_id in ipairs(depends) do
    leave_one(id, other_id)
  end
end

return M
