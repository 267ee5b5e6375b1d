-- The log of the statistics: one string that calls append to. The call that finds it long folds it into buckets (module
-- statistics.buckets), so that the common call pays for one command. The last item of new jobs stands behind the last
-- id (module base.serial), which their calls read and write anyway, until a job comes that it cannot count.
--
-- An item is three values: kind, and two numbers. With kind 1 (enqueued) the first is a count; with others they are the
-- ms that the job waited for its first start, and that an attempt ran that is done, or NONE. The head in front of items
-- says what they are of, with kind 0: the minute since 1970, and queue, 0 byte, name (empty if it is the queue's). All
-- are made with struct, and are MessagePack: of the ways to write and to read them, these are the cheapest.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local jobs = require "jqlua.job.jobs"
local serial = require "jqlua.base.serial"
local states = require "jqlua.job.states"

local M = {}

local HEAD = ">BI5I3c0"
local ITEM = ">BI5I5"
-- MessagePack's first bytes of numbers in 4 bytes, and of texts.
local NUMBER = 206 * 4294967296
local TEXT = 218 * 65536
M.NONE = 4294967295
local MOST = 4294967294

-- A longer log is folded. That takes few ms, even if each entry is of another queue.
M.FULL = 8192

M.HEAD = 0
M.ENQUEUED = 1
local DONE = 2
local FAILED = 3
local LAPSED = 4
local ERROR = 5
local CANCELLED = 6
local RELEASED = 7
local MOVED = 8
local SKIPPED = 9

-- [1]: what this call has not written yet: queue and name of the last head, head, item, ...
M.gathered = KEPT

-- New jobs of this call that are in no item yet: of which queue and name, how many.
local new = { "", "", 0 }

-- The last head that was made, behind what it is of.
local made = { "", "", 0, "" }

local function head_of(queue, name)
  local now = meta.state[meta.NOW_MS]
  local minute = (now - now % 60000) / 60000
  if minute ~= made[3] or name ~= made[2] or queue ~= made[1] then
    local pair = queue .. "\0" .. (name == queue and "" or name)
    made[1], made[2], made[3] = queue, name, minute
    made[4] = struct.pack(HEAD, M.HEAD, NUMBER + minute, TEXT + #pair, pair)
  end
  return made[4]
end

local function item(kind, first, second)
  return struct.pack(ITEM, kind, NUMBER + first, NUMBER + second)
end

local function add(queue, name, kind, first, second)
  local list = M.gathered[1]
  if not list then
    list = { queue, name, head_of(queue, name), nil }
    M.gathered[1] = list
  elseif list[1] ~= queue or list[2] ~= name then
    list[1], list[2], list[#list + 1] = queue, name, head_of(queue, name)
  end
  list[#list + 1] = item(kind, first, second)
end

--- Records a new job.
function M.entered(job)
  local queue, name = job[jobs.QUEUE], job[jobs.NAME]
  if new[1] ~= queue or new[2] ~= name then
    if new[3] > 0 then
      add(new[1], new[2], M.ENQUEUED, new[3], M.NONE)
    end
    new[1], new[2], new[3] = queue, name, 0
  end
  new[3] = new[3] + 1
end

--- The item of the last new jobs, with its head.
---@param before string that of the calls before, or ""
---@return string
function M.follow(before)
  local count = new[3]
  if count == 0 then
    return before
  end
  local head = head_of(new[1], new[2])
  new[3] = 0
  if before:sub(1, #head) == head then
    count = count + struct.unpack(">I4", before, #head + 3) -- behind kind and first byte
  elseif before ~= "" then
    local list = M.gathered[1] or { "", "" }
    M.gathered[1] = list
    list[1], list[2], list[#list + 1] = "", "", before
  end
  return head .. item(M.ENQUEUED, count, M.NONE)
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
  return redis.call("APPEND", keys.LOG, table.concat(list, "", 3)) > M.FULL
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
