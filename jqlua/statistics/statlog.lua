-- The log of the statistics: one string that calls append to. The call that finds it long folds it into buckets (module
-- statistics.buckets), so that the common call pays for one command. The last item of new jobs stands behind the last
-- id (module base.serial), which their calls read and write anyway, until a job comes that it cannot count.
--
-- An item of the log is: Unix seconds, queue, name (empty if it is the queue's), kind, and two numbers. With kind 1
-- (enqueued) the first is a count; with others they are the ms that the job waited for its first start, and that an
-- attempt ran that is done, or NONE. 0 and two empty texts in front stand for what the item before has there. Items are
-- made with struct, and are MessagePack all the same: of the ways to write and to read them, these are the cheapest.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local jobs = require "jqlua.job.jobs"
local serial = require "jqlua.base.serial"
local states = require "jqlua.job.states"

local M = {}

local HEAD = ">I5I2c0I2c0B"
local NUMBERS = ">I5I5"
local SAME = ">c3BI5I5"
local LIKE_BEFORE = "\0\160\160"
M.VALUES = 6 -- of an item
-- MessagePack's first bytes of numbers in 4 and 2 bytes, and of texts.
local NUMBER = 206 * 4294967296
local TEXT = 217 * 256
M.NONE = 4294967295
local MOST = 4294967294

-- A longer log is folded. That takes few ms, even if each entry is of another queue.
M.FULL = 8192

local ENQUEUED = 1
local DONE = 2
local FAILED = 3
local LAPSED = 4
local ERROR = 5
local CANCELLED = 6
local RELEASED = 7
local MOVED = 8
local SKIPPED = 9

-- [1]: what this call has not written yet: queue and name of the last item, item, item, ...
M.gathered = KEPT

-- New jobs of this call that are in no item yet: of which queue and name, how many.
local new = { "", "", 0 }

-- The last head of an item of new jobs, and its second, queue and name.
local last = { "", 0, "", "" }

local function head_of(now, queue, name, kind)
  name = name == queue and "" or name
  return struct.pack(HEAD, NUMBER + (now - now % 1000) / 1000, TEXT + #queue, queue, TEXT + #name, name, kind)
end

local function append(queue, name, item)
  local list = M.gathered[1] or { "", "" }
  M.gathered[1] = list
  list[1], list[2], list[#list + 1] = queue, name, item
end

local function add(queue, name, kind, first, second)
  local list = M.gathered[1]
  if list and list[1] == queue and list[2] == name then
    list[#list + 1] = struct.pack(SAME, LIKE_BEFORE, kind, NUMBER + first, NUMBER + second)
  else
    append(queue, name, head_of(meta.state[meta.NOW_MS], queue, name, kind)
      .. struct.pack(NUMBERS, NUMBER + first, NUMBER + second))
  end
end

--- Records a new job.
function M.entered(job)
  local queue, name = job[jobs.QUEUE], job[jobs.NAME]
  if new[1] ~= queue or new[2] ~= name then
    if new[3] > 0 then
      add(new[1], new[2], ENQUEUED, new[3], M.NONE)
    end
    new[1], new[2], new[3] = queue, name, 0
  end
  new[3] = new[3] + 1
end

--- The item of the last new jobs.
---@param before string that of the calls before, or ""
---@return string
function M.follow(before)
  local queue, name, count, now = new[1], new[2], new[3], meta.state[meta.NOW_MS]
  if count == 0 then
    return before
  end
  new[3] = 0
  local second = now - now % 1000
  if last[2] ~= second or last[3] ~= queue or last[4] ~= name then
    last[1], last[2], last[3], last[4] = head_of(now, queue, name, ENQUEUED), second, queue, name
  end
  local head = last[1]
  if before:sub(1, #head) == head then
    count = count + struct.unpack(">I4", before, #head + 2)
  elseif before ~= "" then
    append("", "", before)
  end
  return head .. struct.pack(NUMBERS, NUMBER + count, NUMBER + M.NONE)
end

local function kind_of(job, to)
  if to == states.DONE or to == states.KEPT then
    return DONE
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
  return ms < 0 and 0 or ms > MOST and MOST or ms
end

--- Records the end of an attempt or a job. The job still has the queue and name under which it counts, and HOW is set.
---@param from string letter of its state
---@param to string
function M.left(job, from, to)
  local wait, run, kind = M.NONE, M.NONE, kind_of(job, to)
  if from == states.RUNNING then
    local started_ms = job[jobs.STARTED_MS]
    if job[jobs.ATTEMPT] == 1 then
      local ready_ms = job[jobs.OPTIONS] ~= "" and jobs.options(job).ready_ms or jobs.created_ms(job[jobs.ID])
      wait = within(started_ms - ready_ms)
    end
    run = kind == DONE and within(meta.state[meta.NOW_MS] - started_ms) or run
  end
  add(job[jobs.QUEUE], job[jobs.NAME], kind, wait, run)
end

--- Records that a job that does not run moves to another queue.
function M.moved(job)
  add(job[jobs.QUEUE], job[jobs.NAME], MOVED, M.NONE, M.NONE)
end

--- Appends the records to the log.
---@return boolean whether the log is to be folded
function M.write()
  local list = M.gathered[1]
  M.gathered[1] = nil
  return redis.call("APPEND", keys.LOG, list[4] and table.concat(list, "", 3) or list[3]) > M.FULL
end

--- All that is recorded.
---@return string log
function M.read()
  local _, arrivals = serial.read()
  return (redis.call("GET", keys.LOG) or "") .. arrivals
end

--- Takes all that is recorded out of Redis.
---@return string log
function M.take()
  local id, arrivals = serial.read()
  if arrivals ~= "" then
    redis.call("SET", keys.SEQ, id)
  end
  local log = redis.call("GET", keys.LOG) or ""
  redis.call("DEL", keys.LOG)
  return log .. arrivals
end

return M
