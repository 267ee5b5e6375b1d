-- Jobs that failed or were cancelled, once more from the beginning.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.writes"
local failure = require "jqlua.life.failure"
local history = require "jqlua.job.history"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local lineup = require "jqlua.limits.placement"
local moving = require "jqlua.life.moving"
local readers = require "jqlua.links.readers"
local queue = require "jqlua.queue.record"
local unique = require "jqlua.job.unique"

local M = {}

M.STATES = "tec" -- retrying, error, cancelled

--- Of a job that never started: a moment to start by that is still to come holds, one that has passed does not.
local function renew_times(of)
  local options, now = job.options(of), meta.state[meta.NOW_MS]
  if options.expires_ms and options.expires_ms > now then
    local owner = queue.load(of[job.QUEUE])
    batch.add(keys.EXPIRING .. of[job.QUEUE], options.expires_ms, of[job.ID])
    queue.note_due(owner, queue.DUE_WAITING, options.expires_ms)
  else
    options.expires_ms = nil
  end
  options.ready_ms = options.ready_ms and now
  of[job.OPTIONS] = next(options) and cmsgpack.pack(options) or ""
end

--- The job is queued, as if it had not failed yet. Attempts go on counting; what is known of the last failure stays.
---@param name? string the queue in which it is to wait, where that is another
---@return string answer
---@return boolean? changed
function M.retry(of, name)
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
  failure.begin_anew(of)
  local is_moved = name and name ~= of[job.QUEUE]
  if is_moved then
    moving.leave(of, name)
  end
  lineup.enter(of, is_moved)
  if of[job.OPTIONS] ~= "" and of[job.ATTEMPT] == 0 then
    renew_times(of)
  end
  job.save(of)
  return "queued", true
end

return M
