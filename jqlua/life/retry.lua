-- Jobs that failed or were cancelled, once more from the beginning.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.writes"
local constraint = require "jqlua.limits.constraint"
local history = require "jqlua.job.history"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local lineup = require "jqlua.limits.placement"
local readers = require "jqlua.links.readers"
local queue = require "jqlua.queue.record"
local unique = require "jqlua.job.unique"

local M = {}

M.STATES = "tec" -- retrying, error, cancelled

--- Whether the jobs that are to wait again take more matching than a call may do. Before any write.
---@param ids string[]
---@return string? problem
function M.check(ids)
  local jobs = {}
  for _, id in ipairs(meta.state[meta.VERSION] > 0 and ids or {}) do
    local of = job.read(id)
    jobs[#jobs + 1] = of and states.is_of(of[job.STATE], M.STATES) and of or nil
  end
  return constraint.check_asked(jobs, "ids")
end

--- Of a job that never started: a moment to start by that is still to come holds, one that has passed does not. It is
--- ready from now on.
local function renew_times(of)
  local options, now = job.options(of), meta.state[meta.NOW_MS]
  if options.expires_ms and options.expires_ms > now then
    local owner = queue.load(of[job.QUEUE])
    batch.add(keys.EXPIRING .. of[job.QUEUE], options.expires_ms, of[job.ID])
    queue.note_due(owner, queue.DUE_WAITING, options.expires_ms)
  else
    options.expires_ms = nil
  end
  options.ready_ms = now
  of[job.OPTIONS] = next(options) and cmsgpack.pack(options) or ""
end

--- The job is queued, as if it had not failed yet. Attempts go on counting; what is known of the last failure stays.
---@return string answer
---@return boolean? changed
function M.retry(of)
  local state = of[job.STATE]
  if not states.is_of(state, M.STATES)
    or of[job.OPTIONS] ~= "" and state ~= states.RETRYING and not unique.claim(of) then
    return "CONFLICT"
  end
  if state ~= states.RETRYING then
    history.keep_end(of)
    if of[job.OPTIONS] ~= "" then
      readers.enter(of[job.ID], job.given(of).depends or {})
    end
  end
  of[job.FAILURES] = 0
  lineup.enter(of)
  if of[job.ATTEMPT] == 0 then
    renew_times(of)
  end
  job.save(of)
  return "queued", true
end

return M
