---@lazy
-- What follows a success: the job moves on, or further jobs are enqueued, in the same step.
local meta = require "jqlua.base.meta"
local arrival = require "jqlua.life.arrival"
local batch = require "jqlua.base.writes"
local check = require "jqlua.base.check"
local constraint = require "jqlua.limits.constraint"
local failure = require "jqlua.life.failure"
local glob = require "jqlua.base.glob"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local jobspec = require "jqlua.job.spec"
local keys = require "jqlua.base.keys"
local lineup = require "jqlua.limits.placement"
local moving = require "jqlua.life.moving"
local queue = require "jqlua.queue.record"
local taking = require "jqlua.limits.taking"
local statlog = require "jqlua.statistics.log"
local transition = require "jqlua.life.transition"

local M = {}

local MOVE_FIELDS = "name queue priority delay"

--- Checks an outcome's `move`.
---@param path string
---@return string? problem
function M.check_move(move, path)
  if type(move) ~= "table" then
    return check.problem(path, "a map", move)
  end
  for field, value in pairs(move) do
    local expected
    if field == "name" then
      expected = not check.is_name(value) and check.NAME
    elseif field == "queue" then
      expected = moving.check_queue(value)
    elseif field == "priority" then
      expected = not check.is_integer(value, -2147483648, 2147483647) and "an integer from -2147483648 to 2147483647"
    elseif field == "delay" then
      expected = not check.is_number(value, 0, 1e10) and "seconds from 0 to 10^10"
    else
      return check.unknown(path, field, MOVE_FIELDS)
    end
    if expected then
      return check.problem(path .. "." .. field, expected, value)
    end
  end
  if not move.name and not move.queue then
    return "INVALID " .. path .. ": expected name or queue, or both"
  elseif not move.queue and glob.is_pattern(move.name) then
    return "INVALID " .. path .. ".name: holds a *, so it cannot be the queue's name too: give a queue"
  end
end

--- Takes the jobs behind an outcome apart.
---@param said table outcome
---@param i number its index, for errors
---@param first number index in ARGV of the first spec
---@return string? problem
function M.parse(said, i, first)
  local list = "outcomes[" .. i .. "].enqueue"
  if first + 2 * said.enqueue - 1 > #ARGV then
    return "INVALID " .. list .. ": expected " .. said.enqueue
      .. " specs, each with its argument, behind the outcome's blob"
  end
  said.jobs, said.first = {}, first + 1
  for j = 1, said.enqueue do
    local new, problem = jobspec.parse(ARGV[first + 2 * j - 2], j - 1, list)
    if problem then
      return problem
    elseif ARGV[first + 2 * j - 1] == "" then
      return "INVALID " .. list .. "[" .. j - 1 .. "].argument: expected one MessagePack value, got no bytes"
    end
    said.jobs[j] = new
  end
end

--- Checks what takes a look at the namespace.
---@return string? problem
function M.check(said, i)
  local path = "outcomes[" .. i .. "].enqueue"
  return meta.state[meta.VERSION] > 0 and constraint.check_asked(said.jobs, path) or arrival.check(said.jobs, path)
end

--- Enqueues the jobs behind an outcome.
---@return table answer {state, id, created, id, created, ...}
function M.enqueue(said, state)
  local answer = arrival.create_all(said.jobs, said.first, { state })
  batch.flush() -- they may have changed jobs that a pick of this call reads and starts
  return answer
end

--- The running attempt is over, the job goes on somewhere else.
---@param said table outcome
---@param argument string
function M.move(of, said, argument)
  local move = said.move
  local now = meta.state[meta.NOW_MS]
  of[job.HOW] = job.MOVED_ON
  if meta.state[meta.COUNTED] then
    statlog.left(of, states.RUNNING, states.QUEUED)
  end
  local extra = failure.extra(of)
  failure.note_attempt(extra, of)
  extra.f = said.finished_at
  failure.save_extra(of, extra)
  failure.begin_anew(of)
  -- Room, and the place among what runs, belong to the queue that it leaves; transition.move sees to the new one.
  taking.leave(of, false)
  batch.remove(queue.key(queue.load(of[job.QUEUE]), states.RUNNING), of[job.ID])
  of[job.ENDED_MS] = now
  of[job.NAME] = move.name or of[job.NAME]
  of[job.QUEUE] = move.queue or of[job.NAME]
  of[job.PRIORITY] = move.priority or of[job.PRIORITY]
  local owner = moving.admit(of)
  redis.call("SET", keys.ARGUMENT .. of[job.ID], argument)
  if move.delay and move.delay > 0 then
    transition.move(of, states.SCHEDULED, now + math.ceil(move.delay * 1000), true)
  else
    transition.move(of, lineup.place(of, owner, argument), of[job.PRIORITY], true)
  end
  job.save(of)
end

return M
