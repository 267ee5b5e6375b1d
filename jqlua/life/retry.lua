-- Jobs that failed, were cancelled or skipped, once more from the beginning.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local admission = require "jqlua.life.admission"
local constraints = require "jqlua.limits.constraints"
local failure = require "jqlua.life.failure"
local history = require "jqlua.job.history"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local placement = require "jqlua.limits.placement"
local moving = require "jqlua.life.moving"
local readers = require "jqlua.links.readers"
local queues = require "jqlua.queue.queues"
local unique = require "jqlua.job.unique"

local M = {}

M.STATES = "tecn" -- retrying, error, cancelled, skipped
M.UNASKED = "tec" -- what is retried where no state is named: what was not needed still is not

--- Whether the namespace has room for the queue in which jobs are to wait again, and whether they take more matching
--- than a call may do. Before any write.
---@param ids? string[]
---@param name? string of the queue, where that is another
---@return string? problem
function M.check(ids, name)
  local problem = name and queues.load(name)[queues.IS_NEW] and admission.check_queues(name, 1, "queue")
  if problem then
    return problem
  end
  local list = {}
  for _, id in ipairs(meta.state[meta.VERSION] > 0 and ids or {}) do
    local of = jobs.read(id)
    if of and states.is_of(of[jobs.STATE], M.STATES) then
      list[#list + 1] = name and { [jobs.QUEUE] = name, [jobs.NAME] = of[jobs.NAME] } or of
    end
  end
  return constraints.check_asked(list, "ids")
end

--- Of a job that never started: a moment to start by that is still to come holds, one that has passed does not. It is
--- ready from now on.
local function renew_times(of)
  local options, now = jobs.options(of), meta.state[meta.NOW_MS]
  if options.expires_ms and options.expires_ms > now then
    local owner = queues.load(of[jobs.QUEUE])
    batch.add(keys.EXPIRING .. of[jobs.QUEUE], options.expires_ms, of[jobs.ID])
    queues.note_due(owner, queues.DUE_WAITING, options.expires_ms)
  else
    options.expires_ms = nil
  end
  options.ready_ms = now
  of[jobs.OPTIONS] = next(options) and cmsgpack.pack(options) or ""
end

--- The job is queued, as if it had not failed yet. Attempts go on counting; what is known of the last failure stays.
---@param name? string the queue in which it is to wait, where that is another
---@return string answer
---@return boolean? changed
function M.retry(of, name)
  local state = of[jobs.STATE]
  if not states.is_of(state, M.STATES)
    or of[jobs.OPTIONS] ~= "" and state ~= states.RETRYING and not unique.claim(of) then
    return "CONFLICT"
  end
  if state ~= states.RETRYING then
    history.keep_end(of)
    if of[jobs.OPTIONS] ~= "" then
      readers.enter(of[jobs.ID], jobs.given(of).depends or {})
    end
  end
  failure.begin_anew(of)
  local is_moved = name and name ~= of[jobs.QUEUE]
  if is_moved then
    moving.leave(of, name)
  end
  placement.enter(of, is_moved)
  if of[jobs.ATTEMPT] == 0 then
    renew_times(of)
  end
  jobs.save(of)
  return "queued", true
end

return M
