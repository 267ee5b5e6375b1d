-- Changes of existing jobs.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local fields = require "jqlua.base.fields"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local jobspec = require "jqlua.job.jobspec"
local placement = require "jqlua.life.placement"
local moving = require "jqlua.life.moving"
local queues = require "jqlua.queue.queues"
local tags = require "jqlua.links.tags"
local transition = require "jqlua.life.transition"

local M = {}

local FIELDS = {
  id = { "job", required = true }, queue = jobspec.FIELDS.queue, priority = jobspec.FIELDS.priority,
  delay = jobspec.FIELDS.delay, run_at = jobspec.FIELDS.run_at, max_retry = jobspec.FIELDS.max_retry,
  timeout = jobspec.FIELDS.timeout,
  tags = { "list", 0, jobspec.OPTIONS.tags[3], of = "name", distinct = true }, -- they may all be taken away
}

--- Parses a change; refuses the call if it is wrong.
---@param blob string MessagePack map
---@param i number its index, for errors
---@param has_argument boolean
---@return table change {id, queue?, priority?, delay?, run_at?, max_retry?, timeout?, tags?}
function M.parse(blob, i, has_argument)
  local path = "jobs[" .. i .. "]"
  local change = check.map(blob)
  check.refuse(not change and check.not_a_map(path, blob))
  fields.check(change, FIELDS, path)
  check.refuse(change.delay and change.run_at
    and "INVALID " .. path .. ".delay: expected either delay or run_at, got both")
  check.refuse(not has_argument and not next(change, next(change))
    and "INVALID " .. path .. ": expected something to change, or an argument")
  return change
end

--- Sets when a waiting job may start.
---@param due_ms number
local function set_time(job, due_ms)
  local now, state = meta.state[meta.NOW_MS], job[jobs.STATE]
  if due_ms <= now and (state == states.QUEUED or state == states.IN_LANE) then
    return
  end
  local queue = queues.load(job[jobs.QUEUE])
  local options = jobs.copy_options(job)
  if job[jobs.ATTEMPT] == 0 or state == states.BLOCKED then
    -- A blocked job whose time has come waits only for other jobs.
    options.ready_ms = (due_ms > now or state ~= states.BLOCKED) and due_ms or nil
    jobs.set_options(job, options)
  end
  if state == states.BLOCKED then
    return
  elseif due_ms <= now then
    if state == states.SCHEDULED or state == states.RETRYING then
      placement.enter(job)
    end
  elseif state == states.SCHEDULED or state == states.RETRYING then
    members.add(queue, state, due_ms, job[jobs.ID])
    queues.note_due(queue, queues.DUE_WAITING, due_ms)
  else
    transition.move(job, states.SCHEDULED, due_ms)
  end
end

local function set_tags(job, new_tags)
  local options = jobs.copy_options(job)
  tags.replace(job, options.tags or {}, new_tags)
  options.tags = new_tags[1] and new_tags or nil
  jobs.set_options(job, options)
end

--- Changes a waiting job.
---@param changed table {queue?, priority?, due_ms?, max_retry?, timeout?, tags?}
---@param argument? string
local function change_waiting(job, changed, argument)
  if argument then
    batch.write(keys.ARGUMENT .. job[jobs.ID], argument)
  end
  jobs.put(job, jobs.MAX_RETRY, changed.max_retry or job[jobs.MAX_RETRY])
  jobs.put(job, jobs.TIMEOUT_MS, changed.timeout and math.ceil(changed.timeout * 1000) or job[jobs.TIMEOUT_MS])
  if changed.tags then
    set_tags(job, changed.tags)
  end
  local is_ready = job[jobs.STATE] == states.QUEUED or job[jobs.STATE] == states.IN_LANE
  if changed.queue and changed.queue ~= job[jobs.QUEUE] then
    moving.move(job, changed.queue, changed.priority or job[jobs.PRIORITY])
  elseif is_ready and (argument or changed.priority or changed.tags) then
    placement.relocate(job, changed.priority or job[jobs.PRIORITY], argument)
    batch.flush() -- before it may be moved
  else
    jobs.put(job, jobs.PRIORITY, changed.priority or job[jobs.PRIORITY])
    if argument then
      batch.flush() -- placement reads it
    end
  end
  if changed.due_ms then
    set_time(job, changed.due_ms)
  end
  jobs.save(job)
end

--- Of a job that is not waiting, only tags can be changed.
---@param job table? job
---@param argument? string
---@return string? answer why it cannot be changed
local function refusal(job, change, argument)
  if not job then
    return "NOTFOUND"
  elseif not states.is_of(job[jobs.STATE], states.WAITING) then
    for field in pairs(change) do
      if argument or field ~= "id" and field ~= "tags" then
        return "CONFLICT"
      end
    end
  end
end

--- Applies a change.
---@param job table? job
---@param argument? string
---@return string answer
function M.apply(job, change, argument)
  local why_not = refusal(job, change, argument)
  if why_not then
    return why_not
  elseif not states.is_of(job[jobs.STATE], states.WAITING) then
    set_tags(job, change.tags)
    jobs.save(job)
    return states.name(job[jobs.STATE])
  end
  local now = meta.state[meta.NOW_MS]
  change.due_ms = change.delay and now + math.ceil(change.delay * 1000)
    or change.run_at and math.max(now, math.ceil(change.run_at * 1000))
  change_waiting(job, change, argument)
  return states.name(job[jobs.STATE])
end

--- Checks the call's limit for matching the waiting jobs. Must precede any write.
---@param changes table[]
function M.check(changes)
  local waiting = {}
  for i, change in ipairs(changes) do
    local job, argument = jobs.read(change.id), ARGV[2 * i] ~= "" and ARGV[2 * i] or nil
    if not refusal(job, change, argument) then
      if states.is_of(job[jobs.STATE], states.WAITING) then
        waiting[#waiting + 1] = change.queue and { [jobs.QUEUE] = change.queue, [jobs.NAME] = job[jobs.NAME] } or job
      end
    end
  end
  constraints.check_asked(waiting, "jobs")
end

--- Replaces a waiting job's argument and times by those of another with its unique key.
---@param new table as jobspec gives it
function M.replace(job, new, argument)
  local now = meta.state[meta.NOW_MS]
  local due_ms = new[jobspec.DELAY_MS] and now + new[jobspec.DELAY_MS]
    or new[jobspec.RUN_AT_MS] and math.max(now, new[jobspec.RUN_AT_MS])
  change_waiting(job, { priority = new[jobspec.GIVEN_PRIORITY] or nil, due_ms = due_ms or nil }, argument)
end

return M
