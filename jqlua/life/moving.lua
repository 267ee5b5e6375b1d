-- Moves a job that does not run to another queue, with what the queue holds of it. Its constraints and groups are
-- determined again there.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local events = require "jqlua.statistics.events"
local extras = require "jqlua.job.extras"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local lanes = require "jqlua.limits.lanes"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local statlog = require "jqlua.statistics.statlog"
local tags = require "jqlua.links.tags"
local transition = require "jqlua.life.transition"

local M = {}

--- Prepares a queue, which may be new, for a job; the caller adds the job to a set there.
---@return table queue
function M.admit(job)
  local queue = queues.load(job[jobs.QUEUE])
  placement.admit(job, queue)
  tags.enter(queue, job)
  queue[queues.CHANGED] = queue[queues.CHANGED] or queue[queues.IS_NEW]
  return queue
end

--- Assigns a job that is in no set of its queue to another. None of its writes may still be buffered.
---@param name string of the other queue
---@return table queue the other one
function M.leave(job, name)
  local queue, id, state = queues.load(job[jobs.QUEUE]), job[jobs.ID], job[jobs.STATE]
  if state == states.IN_LANE then
    lanes.leave(queue, job)
  end
  batch.remove(queues.key(queue, state), id)
  if meta.state[meta.COUNTED] then
    statlog.moved(job)
  end
  extras.note_move(job)
  budget.pay(budget.STEP)
  jobs.put(job, jobs.QUEUE, name)
  local new = M.admit(job)
  local expires_ms = job[jobs.ATTEMPT] == 0 and states.is_of(state, states.WAITING) and jobs.options(job).expires_ms
  if expires_ms then
    batch.remove(keys.EXPIRING .. queue[queues.NAME], id)
    batch.add(keys.EXPIRING .. name, expires_ms, id)
    queues.note_due(new, queues.DUE_WAITING, expires_ms)
  end
  return new
end

--- Moves a waiting job to another queue; the caller saves its record.
---@param priority number its new one
function M.move(job, name, priority)
  batch.flush()
  local state, id = job[jobs.STATE], job[jobs.ID]
  local score = members.score(job)
  local queue = M.leave(job, name)
  jobs.put(job, jobs.PRIORITY, priority)
  if state == states.QUEUED or state == states.IN_LANE then
    transition.move(job, placement.place(job, queue), priority, true)
  else
    members.add(queue, state, score, id)
    if state ~= states.BLOCKED then
      queues.note_due(queue, queues.DUE_WAITING, score)
    end
  end
  events.report(job, "moved")
  batch.flush() -- before it may be moved
end

return M
