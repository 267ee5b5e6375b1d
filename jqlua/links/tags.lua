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

local function note(tags, id, has)
  for _, tag in ipairs(tags or {}) do
    meta.set(meta.TAGGED, true)
    M.pending[tag] = M.pending[tag] or {}
    M.pending[tag][id] = has
  end
end

--- Replaces a job's tags; the caller puts them into its record. Retention then knows that indexes may hold jobs of its
--- queue.
---@param old_tags string[]? those it had
---@param new_tags string[]?
function M.replace(job, old_tags, new_tags)
  note(old_tags, job[jobs.ID], false)
  note(new_tags, job[jobs.ID], true)
  if new_tags and new_tags[1] then
    queues.set(queues.load(job[jobs.QUEUE]), queues.INDEXED)
  end
end

--- Adds a new job.
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
---@param id string its own, or that of a job like it
function M.leave(job, id)
  note(jobs.options(job).tags, id, false)
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
        added[#added + 1] = "0"
        added[#added + 1] = id
      else
        removed[#removed + 1] = id
      end
    end
    write("ZADD", keys.TAGGED .. tag, added)
    write("ZREM", keys.TAGGED .. tag, removed)
    if added[1] then
      call("ZADD", keys.TAG_NAMES, "0", tag)
    elseif call("EXISTS", keys.TAGGED .. tag) == 0 then
      call("ZREM", keys.TAG_NAMES, tag)
    end
  end
end

return M
