-- The log of the statistics: one string that calls append to. The call that finds it long folds it into buckets (module
-- statistics.buckets), so that the common call pays for one command.
--
-- The log is a list of groups: Unix seconds, queue, name (empty if it is the queue's), number of items; then items:
-- kind and two numbers. With kind 1 (enqueued) the first is a count; with others they are the ms that the job waited
-- for its first start, and that the attempt ran, or NONE. It is made with struct, and is MessagePack all the same:
-- of the ways to write and to read it, these are the cheapest.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"

local M = {}

local HEADER = ">I5I2c0I2c0I3"
M.ITEM = ">BI5I5"
M.DONE = 2
-- MessagePack's first bytes of numbers in 4 and 2 bytes, and of texts.
M.NUMBER = 206 * 4294967296
M.SHORT = 205 * 65536
M.TEXT = 217 * 256
M.NONE = 4294967295
M.MOST = 4294967294

-- A longer log is folded. That takes few ms, even if each entry is of another queue.
M.FULL = 8192

local ENQUEUED = 1
local FAILED = 3
local LAPSED = 4
local ERROR = 5
local CANCELLED = 6
local RELEASED = 7
local MOVED = 8
local SKIPPED = 9

---@drained
-- Groups of this call: {queue, name, number enqueued, item, item, ...}; [1] is the last one, the others are under
-- queue, 0 byte and name.
M.gathered = {}

local function group(queue, name)
  local gathered = M.gathered
  local list = gathered[1]
  if list then
    if list[1] == queue and list[2] == name then
      return list
    end
    gathered[list[1] .. "\0" .. list[2]] = list
    list = gathered[queue .. "\0" .. name]
    gathered[queue .. "\0" .. name] = nil
  end
  list = list or { queue, name, 0, nil }
  gathered[1] = list
  return list
end

--- Records a new job.
function M.entered(new)
  local list = group(new[jobs.QUEUE], new[jobs.NAME])
  list[3] = list[3] + 1
end

local function kind_of(job, to)
  if to == states.DONE or to == states.KEPT then
    return M.DONE
  elseif to == states.ERROR then
    return ERROR
  elseif to == states.CANCELLED then
    return CANCELLED
  elseif to == states.SKIPPED then
    return SKIPPED
  elseif to == states.RETRYING then
    return job[jobs.HOW] == jobs.LAPSED and LAPSED or FAILED
  end
  return job[jobs.HOW] == jobs.MOVED_ON and MOVED or RELEASED
end

local function within(ms)
  return ms < 0 and 0 or ms > M.MOST and M.MOST or ms
end

--- Records the end of an attempt or a job. The job still has the queue and name under which it counts, and HOW is set.
---@param from string letter of its state
---@param to string
function M.left(job, from, to)
  local list, wait, run = group(job[jobs.QUEUE], job[jobs.NAME]), M.NONE, M.NONE
  if from == states.RUNNING then
    local started_ms = job[jobs.STARTED_MS]
    if job[jobs.ATTEMPT] == 1 then
      local ready_ms = job[jobs.OPTIONS] ~= "" and jobs.options(job).ready_ms or jobs.created_ms(job[jobs.ID])
      wait = within(started_ms - ready_ms)
    end
    run = within(meta.state[meta.NOW_MS] - started_ms)
  end
  list[#list + 1] = struct.pack(M.ITEM, to == states.DONE and M.DONE or kind_of(job, to), M.NUMBER + wait,
    M.NUMBER + run)
end

--- Records that a job that does not run moves to another queue.
function M.moved(job)
  local list = group(job[jobs.QUEUE], job[jobs.NAME])
  list[#list + 1] = struct.pack(M.ITEM, MOVED, M.NUMBER + M.NONE, M.NUMBER + M.NONE)
end

local function entry_of(list)
  local queue, name, enqueued = list[1], list[2], list[3]
  if enqueued > 0 then
    list[#list + 1] = struct.pack(M.ITEM, ENQUEUED, M.NUMBER + enqueued, M.NUMBER + M.NONE)
  end
  if name == queue then
    name = ""
  end
  local now = meta.state[meta.NOW_MS]
  return struct.pack(HEADER, M.NUMBER + (now - now % 1000) / 1000, M.TEXT + #queue, queue, M.TEXT + #name, name,
    M.SHORT + #list - 3) .. (list[5] and table.concat(list, "", 4) or list[4])
end

--- Appends the records to the log.
---@return boolean whether the log is to be folded
function M.write()
  local gathered = M.gathered
  local entry = entry_of(gathered[1])
  gathered[1] = nil
  if next(gathered) then
    local parts = { entry }
    for other, items in next, gathered do
      gathered[other] = nil
      parts[#parts + 1] = entry_of(items)
    end
    entry = table.concat(parts)
  end
  return redis.call("APPEND", keys.LOG, entry) > M.FULL
end

return M
