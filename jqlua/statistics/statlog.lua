-- The log of the statistics: one string that calls append to. The call that finds it long folds it into buckets (module
-- statistics.buckets), so that the common call pays for one command. The last item of new jobs stands behind the last
-- id (module base.serial), which their calls read and write anyway, until a job comes that it cannot count.
--
-- An item is six values: the minute since 1970, queue, 0 byte and name (empty if it is the queue's), the kind, the ms
-- that a job waited for its first start, and that an attempt ran that is done, each or NONE, and how often that was.
-- They are MessagePack, and made with struct: of the ways to write and to read them, these are the cheapest.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local jobs = require "jqlua.job.jobs"
local serial = require "jqlua.base.serial"
local states = require "jqlua.job.states"

local M = {}

local SUBJECT = ">I5I3c0" -- of an item: its first two values
local REST = ">BI5I5I5"
-- MessagePack's first bytes of numbers in 4 bytes, and of texts.
local NUMBER = 206 * 4294967296
local TEXT = 218 * 65536
M.NONE = 4294967295
local MOST = 4294967294

-- A longer log is folded.
M.FULL = 16384

local ENQUEUED = "\1\206\255\255\255\255\206\255\255\255\255" -- kind 1, and neither wait nor run
M.DONE = 2
M.FAILED = 3
M.LAPSED = 4
M.ERROR = 5
local CANCELLED = 6
M.RELEASED = 7
local MOVED = 8
local SKIPPED = 9

-- Items that this call has not written yet.
M.gathered = KEPT

-- What happened after them, in no item yet: queue, name, kind, wait, run, how often.
M.latest = { "", "", 0, 0, 0, 0 }
M.COUNT = 6

-- New jobs of this call that are in no item yet: their subject, how many. The same of the item behind the last id.
local new = { "", 0 }
local behind = { "", 0 }

-- The last subject that was made, behind what it is of.
local made = { "", "", 0, "" }

local function subject_of(queue, name)
  local now = meta.state[meta.NOW_MS]
  local minute = (now - now % 60000) / 60000
  if minute ~= made[3] or name ~= made[2] or queue ~= made[1] then
    local pair = queue .. "\0" .. (name == queue and "" or name)
    made[1], made[2], made[3] = queue, name, minute
    made[4] = struct.pack(SUBJECT, NUMBER + minute, TEXT + #pair, pair)
  end
  return made[4]
end

local function enqueued(front, subject, count)
  return front .. subject .. ENQUEUED .. struct.pack(">I5", NUMBER + count)
end

local function add(item)
  M.gathered[#M.gathered + 1] = item
end

--- Makes an item of what happened last.
local function close()
  local last = M.latest
  local count = last[6]
  last[6] = 0
  return subject_of(last[1], last[2]) .. struct.pack(REST, last[3], NUMBER + last[4], NUMBER + last[5], NUMBER + count)
end

--- Records new jobs.
---@param job table one of them; all have its queue and name
function M.entered(job, count)
  local subject = subject_of(job[jobs.QUEUE], job[jobs.NAME])
  if subject ~= new[1] then
    if new[2] > 0 then
      add(enqueued("", new[1], new[2]))
    end
    new[1], new[2] = subject, 0
  end
  new[2] = new[2] + count
end

--- What is to be written as the last id.
---@param id string
---@param before? string what stood behind the last one, unless this function has put it there
---@return string id and what stands behind it
function M.follow(id, before)
  if before then
    behind[1] = before:sub(1, -#ENQUEUED - 6)
    behind[2] = before ~= "" and struct.unpack(">I4", before, #before - 3) or 0
  end
  if new[2] > 0 then
    local count = new[1] == behind[1] and behind[2] or 0
    if count < behind[2] then
      add(enqueued("", behind[1], behind[2]))
    end
    behind[1], behind[2], new[2] = new[1], count + new[2], 0
  end
  return behind[2] > 0 and enqueued(id, behind[1], behind[2]) or id
end

-- What a change counts as, by the state that it led to, or else by how the attempt ended.
local KINDS = {
  [states.DONE] = M.DONE, [states.KEPT] = M.DONE, [states.ERROR] = M.ERROR, [states.CANCELLED] = CANCELLED,
  [states.SKIPPED] = SKIPPED,
}
local KINDS_OF_ATTEMPTS = { [jobs.FAILED] = M.FAILED, [jobs.LAPSED] = M.LAPSED, [jobs.MOVED_ON] = MOVED }

local function within(ms)
  return ms < 0 and 0 or ms > MOST and MOST or ms
end

local function note(job, kind, wait, run)
  local last, queue, name = M.latest, job[jobs.QUEUE], job[jobs.NAME]
  if last[6] > 0 then
    if wait == last[4] and run == last[5] and kind == last[3] and queue == last[1] and name == last[2] then
      last[6] = last[6] + 1
      return
    end
    add(close())
  end
  last[1], last[2], last[3], last[4], last[5], last[6] = queue, name, kind, wait, run, 1
end

--- Records the end of an attempt or a job. The job still has the queue and name under which it counts, and HOW is set.
---@param from string letter of its state
---@param to string
---@param ids string[] of all jobs that end so and are like it: id, anything, id, anything, ...
---@param first number index of the first in it
---@param last number
function M.left(job, from, to, ids, first, last)
  local run, kind = M.NONE, KINDS[to] or KINDS_OF_ATTEMPTS[job[jobs.HOW]] or M.RELEASED
  local started_ms, is_first = job[jobs.STARTED_MS], from == states.RUNNING and job[jobs.ATTEMPT] == 1
  if from == states.RUNNING and kind == M.DONE then
    run = within(meta.state[meta.NOW_MS] - started_ms)
  end
  local ready_ms = is_first and job[jobs.OPTIONS] ~= "" and jobs.options(job).ready_ms
  for i = first, last, 2 do
    note(job, kind, is_first and within(started_ms - (ready_ms or jobs.created_ms(ids[i]))) or M.NONE, run)
  end
end

--- Records that a job that does not run moves to another queue.
function M.moved(job)
  note(job, MOVED, M.NONE, M.NONE)
end

--- Appends the records to the log.
---@return boolean whether the log is to be folded
function M.write()
  local list, log = M.gathered, M.latest[M.COUNT] > 0 and close() or ""
  if list[1] then
    log = table.concat(list) .. log
    for i = #list, 1, -1 do
      list[i] = nil
    end
  end
  return redis.call("APPEND", keys.LOG, log) > M.FULL
end

--- All that is recorded.
---@return string log
function M.read()
  local _, arrivals = serial.read()
  return (redis.call("GET", keys.LOG) or "") .. arrivals
end

--- Replaces all that is recorded.
function M.replace(log)
  serial.cut()
  redis.call("SET", keys.LOG, log)
end

return M
