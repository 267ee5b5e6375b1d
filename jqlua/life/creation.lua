-- Creates jobs: those of enqueue, those that an outcome brings, those of schedules.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local change = require "jqlua.life.change"
local dependents = require "jqlua.life.dependents"
local events = require "jqlua.statistics.events"
local jobs = require "jqlua.job.jobs"
local readers = require "jqlua.links.readers"
local states = require "jqlua.job.states"
local jobspec = require "jqlua.job.jobspec"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local serial = require "jqlua.base.serial"
local transition = require "jqlua.life.transition"
local unique = require "jqlua.links.unique"

local M = {}

-- Dependencies of all jobs of one call together.
local MOST_LINKS = 100000

--- Whether the queue has room for another waiting job.
---@return boolean
function M.has_room(new)
  local queue = queues.load(new[jobs.QUEUE])
  local max = queue[queues.MAX_WAITING]
  if max == 0 then
    return true
  end
  batch.flush()
  return queues.waiting(queue) < max
end

--- Whether another job has its unique key: who enqueues it again must learn of that one, also when there is no room.
local function is_known(new)
  local key = new[jobspec.IS_LINKED] and jobs.copy_options(new).unique
  return key and unique.holder(key) ~= nil
end

--- Refuses the call for a queue that has no room.
function M.check_room(new_jobs)
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

--- Refuses the call for ids that were never issued. Must precede any write.
---@param depends (string|number)[] ids, and indexes
---@param path string as errors name the list
---@param last? string the last id issued
function M.check_ids(depends, path, last)
  last = last or serial.read()
  for i, entry in ipairs(depends) do
    if type(entry) == "string" then
      serial.check_id(path .. "[" .. i - 1 .. "]", entry, last)
    end
  end
end

--- The same for the dependencies of new jobs.
---@param list string as errors name it
function M.check(new_jobs, list)
  local last, count = nil, 0
  for i, new in ipairs(new_jobs) do
    local depends = new[jobspec.IS_LINKED] and jobs.options(new).depends
    if depends then
      count = count + #depends
      check.refuse(count > MOST_LINKS and "INVALID " .. list .. "[" .. i - 1 .. "].depends: more than " .. MOST_LINKS
        .. " dependencies in one call: send fewer")
      last = last or serial.read()
      M.check_ids(depends, list .. "[" .. i - 1 .. "].depends", last)
    end
  end
end

--- The existing job that holds the new job's unique key.
---@return string? id of the job that is used instead of the new one
---@return string? running id of the job that the new one is to run after
local function existing(new, key, argument)
  local id = unique.holder(key)
  local job = id and jobs.read(id)
  local policy = new[jobspec.IF_EXISTS]
  if not job then
    return id
  elseif policy ~= "keep" and states.is_of(job[jobs.STATE], states.WAITING) then
    batch.flush()
    change.replace(job, new, argument)
  elseif policy == "latest" and job[jobs.STATE] == states.RUNNING and not jobs.copy_options(job).unique_within then
    return nil, id
  end
  events.report(job, "met")
  return id
end

--- The ids of jobs that are named by id or by index, without duplicates: a job may be named by both.
---@param made string[] as create_all makes it, of the jobs that indexes refer to
---@param before number how many entries of it precede them
---@return string[]
function M.ids(entries, made, before)
  local ids, known = {}, {}
  for _, entry in ipairs(entries) do
    local id = type(entry) == "number" and made[before + 2 * entry + 1] or entry
    if not known[id] then
      known[id] = true
      ids[#ids + 1] = id
    end
  end
  return ids
end

--- Links a new job to those it has to wait for.
---@param made string[] as of M.ids
---@param before number
---@return boolean blocked
local function link(id, options, made, before)
  local others = {}
  options.depends = M.ids(options.depends, made, before)
  jobs.fetch(options.depends)
  for _, other_id in ipairs(options.depends) do
    if dependents.must_wait(other_id, options.if_failed) then
      others[#others + 1] = other_id
    end
  end
  dependents.link_all(id, others)
  readers.enter(id, options.depends)
  return others[1] ~= nil
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

--- Where a new job waits of whose spec others may wait elsewhere.
---@param new table its ID is set
---@param is_free boolean whether it would wait in its queue's own set
---@param is_blocked? boolean whether it waits for other jobs
---@return number score in the set of its state
local function place(new, queue, argument, is_free, is_blocked)
  local to, score = states.QUEUED, new[jobs.PRIORITY]
  if new[jobspec.IS_TIMED] then
    to, score = schedule(new, queue, is_blocked)
  end
  if is_blocked then
    to, score = states.BLOCKED, 0
    queue[queues.CHANGED] = queue[queues.CHANGED] or queue[queues.IS_NEW]
  elseif to == states.QUEUED and not is_free then
    to = placement.place(new, queue, argument)
  end
  new[jobs.STATE] = to
  return score
end

--- Creates a job that is not like others of its spec, unless another holds its unique key.
---@param parsed table as jobspec gives it
---@param is_free boolean of one that is not linked, as of placement.admit
---@param made string[] as of M.ids
---@param before number
---@return string id
---@return number created 0 or 1
local function create(parsed, queue, is_free, argument, made, before)
  local options, running, is_blocked, is_needless
  if parsed[jobspec.IS_LINKED] then
    local known
    options = jobs.options(parsed)
    if options.unique then
      known, running = existing(parsed, options.unique, argument)
    end
    if known then
      return known, 0
    end
    is_free = placement.admit(parsed, queue)
  end
  local id, new = serial.next(), { unpack(parsed) }
  new[jobs.ID] = id
  if options and options.unique then
    unique.take(options, id, running)
  end
  if running or options and options.depends then
    options = jobs.copy_options(new)
    if running then
      options.depends, options.if_failed = { running }, "run"
    end
    is_blocked = link(id, options, made, before)
    is_needless = options.if_failed == "only" and not is_blocked
    jobs.set_options(new, options)
  end
  local score = place(new, queue, argument, is_free, is_blocked or is_needless)
  jobs.create(id, jobs.encode(new), argument)
  transition.enter(queue, new, score, { id, 1 }, 1)
  if is_needless then
    batch.flush() -- it must be in the set that it leaves
    dependents.free(jobs.read(id))
  end
  return id, 1
end

--- Creates jobs in their order. Those of one spec, one behind the other, that wait in the same place have one record.
---@param arguments string[]
---@param first number index of the first argument in it; the others follow at intervals of two
---@param reply table id, created, ... are appended to it
---@return table reply
function M.create_all(new_jobs, arguments, first, reply)
  local before, n, i = #reply, #reply, 1
  while new_jobs[i] do
    local parsed, from = new_jobs[i], n + 1
    local queue, is_linked = queues.load(parsed[jobs.QUEUE]), parsed[jobspec.IS_LINKED]
    local is_free = not is_linked and placement.admit(parsed, queue)
    if not is_linked and not parsed[jobspec.IS_TIMED] and (is_free or placement.is_fixed(parsed, queue)) then
      local new, record = parsed, parsed[jobspec.RECORD] or jobs.encode(parsed)
      parsed[jobspec.RECORD] = record
      if not is_free then
        new = { unpack(parsed) }
        new[jobs.STATE] = placement.place(new, queue)
        record = jobs.encode(new)
      end
      repeat
        local id = serial.next()
        jobs.create(id, record, arguments[first])
        reply[n + 1], reply[n + 2] = id, 1
        n, i, first = n + 2, i + 1, first + 2
      until new_jobs[i] ~= parsed
      transition.enter(queue, new, new[jobs.PRIORITY], reply, from)
    else
      reply[n + 1], reply[n + 2] = create(parsed, queue, is_free, arguments[first], reply, before)
      n, i, first = n + 2, i + 1, first + 2
    end
  end
  return reply
end

return M
