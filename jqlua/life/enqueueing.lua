-- What enqueue rarely needs: call options, request tokens, limits, scheduled jobs.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local jobspec = require "jqlua.job.jobspec"
local lanes = require "jqlua.limits.lanes"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local request = require "jqlua.life.request"
local unique = require "jqlua.links.unique"

local M = {}

---@return string? token
function M.parse_options(blob)
  local options = check.map(blob)
  check.refuse(not options and check.not_a_map("options", blob))
  for field in pairs(options) do
    check.refuse(field ~= "request" and check.unknown("options", field, "request")
      .. " (an odd number of arguments begins with options: does a job lack its argument?)")
  end
  check.refuse(options.request ~= nil and not request.is_token(options.request)
    and check.problem("request", request.TOKEN, options.request))
  return options.request
end

--- A spec without its headers: a retried call may be another span of the same trace.
local function without_headers(blob)
  local parts = {}
  for field, value in pairs(check.map(blob)) do
    if field ~= "headers" then
      parts[#parts + 1] = cmsgpack.pack(field, value)
    end
  end
  table.sort(parts)
  return table.concat(parts)
end

--- A digest of the call's arguments, to detect another call with the same token.
function M.digest()
  local digests = {}
  for i = 2, #ARGV, 2 do
    digests[#digests + 1] = redis.sha1hex(without_headers(ARGV[i]))
    digests[#digests + 1] = redis.sha1hex(ARGV[i + 1])
  end
  return redis.sha1hex(table.concat(digests))
end

--- Whether another job has its unique key: who enqueues it again must learn of that one, also when there is no room.
local function is_known(new)
  local key = new[jobspec.IS_LINKED] and jobs.copy_options(new).unique
  return key and unique.holder(key) ~= nil
end

--- Checks whether queues have room.
function M.check_queues(new_jobs)
  local waiting = {}
  for i, new in ipairs(new_jobs) do
    local queue = queues.load(new[jobs.QUEUE])
    local max = queue[queues.MAX_WAITING]
    if max > 0 and not is_known(new) then
      waiting[queue] = (waiting[queue] or queues.waiting(queue)) + 1
      check.refuse(waiting[queue] > max and "FULL jobs[" .. i - 1 .. "].queue: " .. check.show(queue[queues.NAME])
        .. " has reached max_waiting " .. max)
    end
  end
end

--- When the job may start, and when it expires.
---@param is_blocked? boolean whether it also waits for other jobs
---@return string state
---@return number score
local function schedule(new, queue, is_blocked)
  local now = meta.state[meta.NOW_MS]
  local to, score = states.QUEUED, new[jobs.PRIORITY]
  local due_ms = new[jobspec.RUN_AT_MS] or new[jobspec.DELAY_MS] and now + new[jobspec.DELAY_MS]
  local options = jobs.copy_options(new)
  if due_ms and due_ms > now then
    to, score = states.SCHEDULED, due_ms
    options.ready_ms = due_ms
    if not is_blocked then
      queues.note_due(queue, queues.DUE_WAITING, due_ms)
    end
  end
  if new[jobspec.EXPIRES_IN_MS] then
    options.expires_ms = now + new[jobspec.EXPIRES_IN_MS]
    batch.add(keys.EXPIRING .. queue[queues.NAME], options.expires_ms, new[jobs.ID])
    queues.note_due(queue, queues.DUE_WAITING, options.expires_ms)
  end
  jobs.set_options(new, options)
  return to, score
end

--- Where a new job waits, and its record.
---@param parsed table as jobspec gives it
---@param options? table its options, if they changed
---@param is_blocked? boolean whether it waits for other jobs
---@return table new the job; shared, if it waits in its queue's own set like others of its spec
---@return number score in the set of its state
---@return string record
function M.place(parsed, id, queue, argument, options, is_blocked)
  local changes_queue = parsed[jobs.NAME] ~= parsed[jobs.QUEUE]
    and queue[queues.FLAGS] % (2 * queues.MIXED) < queues.MIXED or queue[queues.VERSION] < meta.state[meta.ADDED]
  if changes_queue then
    placement.admit(parsed, queue)
  end
  local is_free = queues.is_free(queue, parsed[jobs.NAME])
  if is_free and not options and not parsed[jobspec.IS_TIMED] then
    parsed[jobspec.RECORD] = parsed[jobspec.RECORD] or jobs.encode(parsed)
    parsed[jobs.ID] = id
    return parsed, parsed[jobs.PRIORITY], parsed[jobspec.RECORD]
  end
  local new = { unpack(parsed) }
  new[jobs.ID] = id
  if options then
    jobs.set_options(new, options)
  end
  local to, score = states.QUEUED, new[jobs.PRIORITY]
  if new[jobspec.IS_TIMED] then
    to, score = schedule(new, queue, is_blocked)
  end
  if is_blocked then
    to, score = states.BLOCKED, 0
    queue[queues.CHANGED] = queue[queues.CHANGED] or queue[queues.IS_NEW]
  elseif to == states.QUEUED and not is_free then
    to = placement.place(new, queue, argument)
    if to == states.IN_LANE then
      lanes.join(queue, new)
    end
  end
  new[jobs.STATE] = to
  return new, score, jobs.encode(new)
end

return M
