-- The jobs that have a tag, from their creation until their record is removed. A call's changes are
-- buffered, so that a batch costs a few commands for each tag; transition.commit writes them.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local jobs = require "jqlua.job.jobs"
local queues = require "jqlua.queue.queues"

local M = {}

local call = redis.call

local CHUNK = 2000

M.pending = KEPT -- tag -> {id -> whether the job now has it}

local function note(tag, id, has)
  meta.set(meta.TAGGED, true)
  local changes = M.pending[tag]
  if not changes then
    changes = {}
    M.pending[tag] = changes
  end
  changes[id] = has
end

--- Replaces a job's tags; the caller puts them into its record. Retention then knows that indexes may hold jobs of its
--- queue.
---@param job table job
---@param old_tags string[]? those it had
---@param new_tags string[]?
function M.replace(job, old_tags, new_tags)
  for _, tag in ipairs(old_tags or {}) do
    note(tag, job[jobs.ID], false)
  end
  for _, tag in ipairs(new_tags or {}) do
    note(tag, job[jobs.ID], true)
    queues.set(queues.load(job[jobs.QUEUE]), queues.INDEXED)
  end
end

--- Adds a new job.
---@param queue table
---@param job table job
function M.enter(queue, job)
  local options = jobs.options(job)
  if options.unique_for then
    queues.set(queue, queues.INDEXED)
  end
  if options.tags then
    M.replace(job, nil, options.tags)
  end
end

--- Removes a job whose record goes.
---@param job table job
function M.leave(job)
  M.replace(job, jobs.options(job).tags, nil)
end

local function write(command, key, list)
  for first = 1, #list, CHUNK do
    call(command, key, unpack(list, first, math.min(first + CHUNK - 1, #list)))
  end
end

--- Writes the buffered changes.
function M.flush()
  for tag, changes in pairs(M.pending) do
    M.pending[tag] = nil
    local added, removed = {}, {}
    for id, has in pairs(changes) do
      if has then
        added[#added + 1] = 0
        added[#added + 1] = id
      else
        removed[#removed + 1] = id
      end
    end
    write("ZADD", keys.TAGGED .. tag, added)
    write("ZREM", keys.TAGGED .. tag, removed)
    if added[1] then
      call("ZADD", keys.TAG_NAMES, 0, tag)
    elseif call("EXISTS", keys.TAGGED .. tag) == 0 then
      call("ZREM", keys.TAG_NAMES, tag)
    end
  end
end

return M
