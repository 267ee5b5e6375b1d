---@lazy
-- A job that does not run goes to another queue. What its queue knows of it goes with it; the constraints and groups
-- under which it waits are found anew there.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.writes"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local events = require "jqlua.statistics.events"
local failure = require "jqlua.life.failure"
local glob = require "jqlua.base.glob"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local lane = require "jqlua.limits.lane"
local lineup = require "jqlua.limits.placement"
local queue = require "jqlua.queue.record"
local statlog = require "jqlua.statistics.log"
local tagindex = require "jqlua.job.tags"
local taking = require "jqlua.limits.taking"
local transition = require "jqlua.life.transition"

local M = {}

--- What is expected of a queue's name that is none.
---@return string|false expected
function M.check_queue(name)
  return (not check.is_name(name) or glob.is_pattern(name)) and check.NAME .. ", no *"
end

--- A job comes to a queue that may be new. The caller has it put into a set there.
---@return table owner the queue
function M.admit(of)
  local owner = queue.load(of[job.QUEUE])
  lineup.admit(of, owner)
  tagindex.enter(owner, of)
  owner[queue.CHANGED] = owner[queue.CHANGED] or owner[queue.IS_NEW]
  return owner
end

local function note(of)
  if meta.state[meta.COUNTED] then
    statlog.moved(of)
  end
  failure.note_move(of)
  budget.pay(budget.STEP)
end

--- A job is in no set of its queue any more, and belongs to another. Nothing of it may be unsent.
---@param name string of the other queue
---@return table owner that queue
function M.leave(of, name)
  local owner, id, state = queue.load(of[job.QUEUE]), of[job.ID], of[job.STATE]
  if state == states.IN_LANE then
    lane.leave(owner, of)
  end
  taking.leave(of, false)
  batch.remove(queue.key(owner, state), id)
  note(of)
  of[job.QUEUE] = name
  local new = M.admit(of)
  local expires_ms = of[job.ATTEMPT] == 0 and states.is_of(state, states.WAITING) and job.given(of).expires_ms
  if expires_ms then
    batch.remove(keys.EXPIRING .. owner[queue.NAME], id)
    batch.add(keys.EXPIRING .. name, expires_ms, id)
    queue.note_due(new, queue.DUE_WAITING, expires_ms)
  end
  return new
end

--- A job that waits does so in another queue from now on; the caller has its record written.
---@param priority number that it has from now on
function M.move(of, name, priority)
  batch.flush()
  local state, id = of[job.STATE], of[job.ID]
  local score = redis.call("ZSCORE", queue.key(queue.load(of[job.QUEUE]), state), id)
  local owner = M.leave(of, name)
  of[job.PRIORITY] = priority
  if state == states.QUEUED or state == states.IN_LANE then
    transition.move(of, lineup.place(of, owner), priority, true)
  else
    batch.add(queue.key(owner, state), tonumber(score), id)
    if state ~= states.BLOCKED then
      queue.note_due(owner, queue.DUE_WAITING, tonumber(score))
    end
  end
  events.tell(of, "moved")
  batch.flush() -- before it may go somewhere else
end

return M
