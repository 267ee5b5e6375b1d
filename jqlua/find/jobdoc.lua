-- A job's document: one MessagePack map. Argument, result and error are spliced in as received.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local members = require "jqlua.queue.members"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local readers = require "jqlua.links.readers"
local extras = require "jqlua.job.extras"

local M = {}

local pack = cmsgpack.pack
-- At most so many of the jobs it waits for, and of those that wait for it.
local MOST_LINKED = 100

--- When the job is due, or ended.
---@param score number? in the set of its state
local function put_moment(put, job, score)
  local state = job[jobs.STATE]
  if state == states.SCHEDULED or state == states.RETRYING or state == states.RUNNING then
    put("due_ms", score)
  elseif state == states.KEPT then
    put("ended_ms", job[jobs.ENDED_MS])
  elseif state ~= states.QUEUED and state ~= states.IN_LANE and state ~= states.BLOCKED then
    put("ended_ms", score)
  end
end

--- The last failure and the progress.
local function put_extra(put, extra)
  if extra.r then
    put("reason", extra.r)
    put("message", extra.m)
    put("group", extra.g or extra.r)
  end
  for letter, field in pairs({ l = "lapses", p = "progress", t = "progress_message" }) do
    if extra[letter] then
      put(field, extra[letter])
    end
  end
end

---@param job table job
---@param argument? string nil: a brief document, also without error and result
---@param preview? string the argument, for a document that is brief otherwise
---@return string map
function M.encode(job, argument, preview)
  local parts = {}
  local count = 0
  local function put(field, value)
    count = count + 1
    parts[count] = pack(field, value)
  end
  local function splice(field, bytes)
    count = count + 1
    parts[count] = pack(field) .. bytes
  end
  local state = job[jobs.STATE]
  put("id", job[jobs.ID])
  put("name", job[jobs.NAME])
  put("queue", job[jobs.QUEUE])
  put("status", states.name(state))
  put("priority", job[jobs.PRIORITY])
  put("attempt", job[jobs.ATTEMPT])
  put("retry_count", job[jobs.FAILURES])
  put("max_retry", job[jobs.MAX_RETRY])
  put("timeout", job[jobs.TIMEOUT_MS] / 1000)
  put("keep_result", jobs.has(job, jobs.KEEP_RESULT))
  put("created_ms", jobs.created_ms(job[jobs.ID]))
  if argument or preview then
    splice("argument", argument or preview)
  end
  if job[jobs.ATTEMPT] > 0 then
    put("worker_id", job[jobs.WORKER])
    put("started_ms", job[jobs.STARTED_MS])
  end
  local score = members.score(job)
  put_moment(put, job, score)
  for field, value in pairs(jobs.copy_options(job)) do
    put(field, value)
  end
  if state == states.BLOCKED then
    put("waits_for", redis.call("ZRANGE", keys.WAITS_FOR .. job[jobs.ID], 0, MOST_LINKED - 1))
  end
  if argument and jobs.has(job, jobs.AWAITED) then
    local dependents = redis.call("ZRANGE", keys.DEPENDENTS .. job[jobs.ID], 0, MOST_LINKED - 1)
    if dependents[1] then
      put("dependents", dependents)
    end
  end
  local has_outcome = argument and jobs.has(job, jobs.HAS_OUTCOME)
  if jobs.has(job, jobs.HAS_EXTRA) then
    put_extra(put, extras.read(job))
  end
  if has_outcome and state ~= states.KEPT then
    splice("error", redis.call("GET", keys.OUTCOME .. job[jobs.ID]))
  elseif has_outcome and state == states.KEPT and (score > meta.state[meta.NOW_MS] or readers.any(job)) then
    splice("result", redis.call("GET", keys.OUTCOME .. job[jobs.ID]))
  end
  -- A map of more than 15 has a two byte size.
  return struct.pack(">BI2", 0xDE, count) .. table.concat(parts)
end

return M
