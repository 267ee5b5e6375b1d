-- The state of a pick that a call carries out, and starting its jobs.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local heads = require "jqlua.queue.heads"
local lane_start = require "jqlua.limits.lane_start"
local attempts = require "jqlua.life.attempts"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local starts = require "jqlua.life.starts"
local queues = require "jqlua.queue.queues"
local workers = require "jqlua.pick.workers"

local M = {}

local call = redis.call

-- Fields of a plan.
M.WISH = 1
M.IS_REGISTERED = 2
M.IS_QUIET = 3 -- the worker must take no more jobs
M.EXPIRED = 4 -- how many jobs expired instead of starting
M.STARTED = 5 -- entries of started jobs, to be remembered; false without a request
M.PLACE = 6 -- index of next_ms in the reply; jobs follow it
M.BYTES = 7 -- of arguments in the reply
M.CHUNK = 8 -- how many jobs to take at once
M.REQUEST = 9 -- its token, or false

-- Lengths of arguments are known only when read. So few jobs are taken at first, then more, never many, and none when
-- the reply has this many bytes; surplus jobs are returned, except of lanes.
M.MOST_BYTES = 4194304
local FIRST_CHUNK = 8
local MOST_IN_CHUNK = 32

-- Expired jobs that one pick may end, beyond those of the sweep.
M.MOST_EXPIRED = 100

--- Checks what needs reading, and makes a plan.
---@param token string|false|nil request
---@return table? plan of this call
---@return string? problem
function M.new(wish, token)
  local problem = wish.entries.has_patterns and heads.check_patterns(wish.entries, wish.path .. "queues")
  local is_registered = workers.is_id(wish.worker)
  if is_registered and not workers.is_registered(wish.worker) then
    problem = problem or check.missing("worker", "registered worker", wish.worker)
  end
  if problem then
    return nil, problem
  end
  return {
    wish, is_registered, false, 0, token and {} or false, 0, 0, FIRST_CHUNK, token or false,
  }
end

--- Appends a started job to the reply. Counts expired ones, which are work, too.
---@param document? string
---@param number number of the attempt
local function append(plan, reply, document, argument, id, number)
  if not document then
    plan[M.EXPIRED] = plan[M.EXPIRED] + 1
    return
  end
  local n = #reply
  reply[n + 1], reply[n + 2] = document, argument
  plan[M.BYTES] = plan[M.BYTES] + #(argument or "")
  local started = plan[M.STARTED]
  if started then
    started[#started + 1] = starts.entry(id, number)
  end
end

---@return boolean
function M.is_full(plan)
  return plan[M.BYTES] >= M.MOST_BYTES
end

--- How many to take next: twice as many, within the size estimated from those so far.
local function grow(plan, reply)
  local started, bytes = (#reply - plan[M.PLACE]) / 2, plan[M.BYTES]
  local most = started > 0 and math.ceil((M.MOST_BYTES - bytes) * started / bytes) or meta.NONE
  plan[M.CHUNK] = math.max(1, math.min(MOST_IN_CHUNK, 2 * plan[M.CHUNK], most))
end

--- How many more jobs to take for the plan's reply.
---@param most? number most jobs in it
function M.room_for(plan, reply, most)
  if plan[M.BYTES] >= M.MOST_BYTES then
    return 0
  end
  return math.min((most or plan[M.WISH].count) - (#reply - plan[M.PLACE]) / 2, plan[M.CHUNK])
end

--- Starts jobs popped from the queue's plain set.
---@param popped string[] ids and scores
function M.start_all(queue, popped, plan, reply)
  local wanted = { false, false }
  for i = 1, #popped, 2 do
    local id = popped[i]
    wanted[i], wanted[i + 1] = keys.JOB .. id, keys.ARGUMENT .. id
  end
  local records = call("MGET", unpack(wanted))
  local wish, is_registered = plan[M.WISH], plan[M.IS_REGISTERED]
  for i = 1, #popped, 2 do
    local id, raw = popped[i], records[i]
    if plan[M.BYTES] >= M.MOST_BYTES then
      -- Now: whether more is ready, and for which sleepers, depends on it.
      call("ZADD", queues.key(queue, states.QUEUED), popped[i + 1], id)
    else
      local document, job
      if raw then
        document, job = attempts.start_popped(queue, id, wanted[i], raw, wish.worker, is_registered)
      end
      append(plan, reply, document, records[i + 1], id, job and job[jobs.ATTEMPT] or 1)
    end
  end
  if popped[3] then
    grow(plan, reply)
  end
end

---@return table arguments
local function read_arguments(head, started)
  local known = head.place and head.place.argument
  if known and not started[2] then
    return { known }
  end
  local wanted = {}
  for i, job in ipairs(started) do
    wanted[i] = keys.ARGUMENT .. job[jobs.ID]
  end
  return call("MGET", unpack(wanted))
end

--- Starts the head of a queue that has lanes, and those behind it in its lane that come next.
---@param most number
function M.start_lane(head, most, plan, reply)
  local started = lane_start.take(head, most)
  local arguments = started[1] and read_arguments(head, started)
  local wish, is_registered = plan[M.WISH], plan[M.IS_REGISTERED]
  for i, job in ipairs(started) do
    local document
    if job[jobs.OPTIONS] ~= "" or jobs.has(job, jobs.STARTED) then
      document = attempts.start(job, wish.worker, is_registered)
    else
      local id = job[jobs.ID]
      document = attempts.start_popped(head.queue, id, keys.JOB .. id, jobs.encode(job), wish.worker, is_registered)
      job[jobs.STATE] = states.RUNNING
    end
    append(plan, reply, document, arguments[i], job[jobs.ID], math.max(1, job[jobs.ATTEMPT]))
  end
  grow(plan, reply)
end

return M
