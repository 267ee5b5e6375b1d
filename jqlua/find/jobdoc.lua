-- A job's document: one MessagePack map. Argument, result and error are spliced in as received.
local documents = require "jqlua.values.documents"
local extras = require "jqlua.job.extras"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local members = require "jqlua.queue.members"
local meta = require "jqlua.base.meta"
local readers = require "jqlua.links.readers"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- At most so many of the jobs it waits for, and of those that wait for it.
local MOST_LINKED = 100

--- When the job is due, or ended, and what it waits for.
---@param score number? in the set of its state
local function add_state(shown, job, score)
  local state = job[jobs.STATE]
  if state == states.SCHEDULED or state == states.RETRYING or state == states.RUNNING then
    shown.due_ms = score
  elseif state == states.BLOCKED then
    shown.waits_for = call("ZRANGE", keys.WAITS_FOR .. job[jobs.ID], 0, MOST_LINKED - 1)
  elseif state ~= states.QUEUED and state ~= states.IN_LANE then
    shown.ended_ms = state == states.KEPT and job[jobs.ENDED_MS] or score
  end
  if job[jobs.ATTEMPT] > 0 then
    shown.worker_id, shown.started_ms = job[jobs.WORKER], job[jobs.STARTED_MS]
  end
end

---@param argument? string nil: a brief document, also without error and result
---@param preview? string the argument, for a document that is brief otherwise
---@return string map
function M.encode(job, argument, preview)
  local id, state, shown = job[jobs.ID], job[jobs.STATE], jobs.copy_options(job)
  local score, blobs, extra = members.score(job), { argument = argument or preview }, extras.read(job)
  shown.id, shown.name, shown.queue, shown.status = id, job[jobs.NAME], job[jobs.QUEUE], states.name(state)
  shown.priority, shown.attempt, shown.retry_count = job[jobs.PRIORITY], job[jobs.ATTEMPT], job[jobs.FAILURES]
  shown.max_retry, shown.timeout = job[jobs.MAX_RETRY], job[jobs.TIMEOUT_MS] / 1000
  shown.keep_result, shown.created_ms = jobs.has(job, jobs.KEEP_RESULT), jobs.created_ms(id)
  add_state(shown, job, score)
  if argument and jobs.has(job, jobs.AWAITED) then
    local dependents = call("ZRANGE", keys.DEPENDENTS .. id, 0, MOST_LINKED - 1)
    shown.dependents = dependents[1] and dependents
  end
  if extra.r then
    shown.reason, shown.message, shown.group = extra.r, extra.m, extra.g or extra.r
  end
  shown.lapses, shown.progress, shown.progress_message = extra.l, extra.p, extra.t
  if argument and jobs.has(job, jobs.HAS_OUTCOME) then
    if state ~= states.KEPT then
      blobs.error = call("GET", keys.OUTCOME .. id)
    elseif score > meta.state[meta.NOW_MS] or readers.any(job) then
      blobs.result = call("GET", keys.OUTCOME .. id)
    end
  end
  return documents.pack(shown, blobs)
end

return M
