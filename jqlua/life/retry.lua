-- Retries jobs that failed, were cancelled or skipped, from the beginning.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local constraints = require "jqlua.limits.constraints"
local failure = require "jqlua.life.failure"
local history = require "jqlua.life.history"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local placement = require "jqlua.life.placement"
local moving = require "jqlua.life.moving"
local readers = require "jqlua.links.readers"
local queues = require "jqlua.queue.queues"
local unique = require "jqlua.links.unique"

local M = {}

M.STATES = "tecn" -- retrying, error, cancelled, skipped
M.DEFAULT_STATES = "tec" -- retried if no state is named: not skipped jobs, which are still not needed

--- Checks the call's limit for matching. Must precede any write.
---@param ids? string[]
---@param name? string of the queue, if it changes
function M.check(ids, name)
  local list = {}
  for _, id in ipairs(meta.state[meta.VERSION] > 0 and ids or {}) do
    local job = jobs.read(id)
    if job and states.is_of(job[jobs.STATE], M.STATES) then
      list[#list + 1] = name and { [jobs.QUEUE] = name, [jobs.NAME] = job[jobs.NAME] } or job
    end
  end
  constraints.check_asked(list, "ids")
end

--- For a job that never started: an expiry in the future still applies, a past one does not. It is ready from now on.
local function renew_times(job)
  local options, now = jobs.copy_options(job), meta.state[meta.NOW_MS]
  if options.expires_ms and options.expires_ms > now then
    local queue = queues.load(job[jobs.QUEUE])
    batch.add(keys.EXPIRING .. job[jobs.QUEUE], options.expires_ms, job[jobs.ID])
    queues.note_due(queue, queues.DUE_WAITING, options.expires_ms)
  else
    options.expires_ms = nil
  end
  options.ready_ms = now
  jobs.set_options(job, options)
end

--- Queues the job as if it had not failed yet. Attempts keep counting; the last failure stays known.
---@param name? string the queue in which it is to wait, if it changes
---@return string answer
---@return boolean? changed
function M.retry(job, name)
  local state = job[jobs.STATE]
  if not states.is_of(state, M.STATES)
    or job[jobs.OPTIONS] ~= "" and state ~= states.RETRYING and not unique.claim(job) then
    return "CONFLICT"
  end
  if state ~= states.RETRYING then
    history.keep_end(job)
    if job[jobs.OPTIONS] ~= "" then
      readers.enter(job[jobs.ID], jobs.options(job).depends or {})
    end
  end
  failure.reset(job)
  local is_moved = name and name ~= job[jobs.QUEUE]
  if is_moved then
    moving.leave(job, name)
  end
  placement.enter(job, is_moved)
  if job[jobs.ATTEMPT] == 0 then
    renew_times(job)
  end
  jobs.save(job)
  return "queued", true
end

return M
