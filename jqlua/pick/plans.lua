-- What a call that gives out jobs has to do: for whom, how many, and the reply. Starts the jobs.
local attempts = require "jqlua.life.attempts"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local patterns = require "jqlua.pick.patterns"
local places = require "jqlua.pick.places"
local queues = require "jqlua.queue.queues"
local request = require "jqlua.life.request"
local states = require "jqlua.job.states"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

-- Lengths of arguments are known only when read. So few jobs are taken at first, then more, never many, and none when
-- the reply has this many bytes; surplus jobs are returned, except of lanes.
local MOST_BYTES = 4194304
local FIRST_CHUNK = 8
local MOST_IN_CHUNK = 32

-- Expired jobs that one call may end, beyond those of the sweep.
local MOST_EXPIRED = 100

---@param wish table as of wishes.of_pick: of it {worker, count, without, wait, is_registered}
---@param token string|false|nil request
---@param reply table next_ms, and for each job what is in front, if anything, its document and argument are appended
---@return table plan; other fields are only set where they are needed: queue: the only one that is read, is_quiet: no
--- jobs are wanted, has_slots: its worker is pushed to, remembered: of its request, front(worker): what stands in front
--- of each job in the reply, is_single: each job needs a choice of its own
function M.of(wish, token, reply)
  return {
    wish = wish, worker = wish.worker, reply = reply, count = 0, bytes = 0, chunk = FIRST_CHUNK, expired = 0,
    request = token, started = token and { nil },
  }
end

--- Appends the keys of what a pick reads.
---@param token string|false request
---@param wanted string[]
---@return string[] wanted
function M.keys(wish, token, wanted)
  if wish.queue then
    wanted[#wanted + 1] = queues.record_key(wish.queue)
  end
  if token then
    wanted[#wanted + 1] = request.key("p", token)
  end
  if wish.is_registered then
    wanted[#wanted + 1] = keys.WORKER .. wish.worker
  end
  return wanted
end

--- Checks what a pick has read, and makes its plan.
---@param raws (string|false)[]
---@param at number where in raws the values of its keys begin
---@return table plan of this call
function M.new(wish, token, raws, at, reply)
  local plan = M.of(wish, token, reply)
  if wish.queue then
    plan.queue, at = queues.decode(wish.queue, raws[at]), at + 1
  elseif wish.entries.has_patterns then
    patterns.check(wish.entries, wish.path .. "queues")
  end
  if token then
    plan.remembered, at = raws[at], at + 1
  end
  if wish.is_registered then
    local record = workers.decode(wish.worker, raws[at])
    check.refuse(not record and check.missing("worker", "registered worker", wish.worker))
    plan.is_quiet, plan.has_slots = record.k ~= nil, record.u ~= nil
  end
  return plan
end

local function append(plan, document, argument)
  local reply = plan.reply
  local n = #reply
  if plan.front then
    local front = plan.front(plan.worker)
    for i = 1, #front do
      reply[n + i] = front[i]
    end
    n = n + #front
  end
  reply[n + 1], reply[n + 2] = document, argument
  plan.count, plan.bytes = plan.count + 1, plan.bytes + #(argument or "")
end

--- Appends the jobs that this request started before and whose attempts still run: its reply was lost, so their leases
--- begin again. Jobs beyond max_runtime are released. Whether more is ready is unknown: next_ms says to ask again.
---@param kind string of request
---@return boolean # whether it was made before
function M.recall(plan, kind)
  local started = request.recall(kind, plan.request, plan.remembered)
  if not started then
    return false
  end
  local running = {}
  for id, token in string.gmatch(started, "(%S+) (%S+)") do
    local job = jobs.read(id)
    if job and attempts.is_running(job, token) then
      if attempts.renew(job) > 0 then
        running[#running + 1] = job
      else
        attempts.release(job, 0)
      end
    end
  end
  transition.commit()
  for _, job in ipairs(running) do
    plan.worker = job[jobs.WORKER]
    append(plan, jobs.document(job), call("GET", keys.ARGUMENT .. job[jobs.ID]))
  end
  return true
end

--- Whether the reply has all that it may.
---@param most number of jobs
---@return boolean
function M.is_full(plan, most)
  return plan.count >= most or plan.bytes >= MOST_BYTES
end

--- Starts jobs that were taken (places.take). Counts expired ones, which are work, too.
local function start(plan, queue, popped, raws, taken)
  local started, worker, has_slots = plan.started, plan.worker, plan.has_slots
  for i = 1, taken and 2 * #taken or #popped, 2 do
    local id = popped[i]
    if not taken and plan.bytes >= MOST_BYTES then
      -- Now: whether more is ready, and for which sleepers, depends on it.
      call("ZADD", queues.key(queue, states.QUEUED), popped[i + 1], id)
    else
      local job = taken and taken[(i + 1) / 2] or jobs.from_record(id, raws[i])
      local document = job and attempts.start(job, worker, has_slots)
      if document then
        append(plan, document, raws[i + 1])
        if started then
          started[#started + 1], started[#started + 2] = id, jobs.token(job)
        end
      else
        plan.expired = plan.expired + 1
      end
    end
  end
end

--- Takes and starts the first jobs of the places that choose finds.
---@param most number of jobs in the reply
---@param choose fun(what, without): table?, boolean? what it returns: place, or whether the search was cut short
---@return boolean? is_more
function M.fill(plan, most, choose, what)
  local wish = plan.wish
  while not M.is_full(plan, most) do
    if plan.expired > MOST_EXPIRED then
      return true
    end
    local place, is_more = choose(what, wish.without)
    if not place then
      return is_more
    end
    local room = plan.is_single and 1 or math.min(most - plan.count, plan.chunk)
    local popped, raws, taken = places.take(place, room)
    if not popped[1] then
      return place.id ~= nil -- the index and the queue disagree: never loop on that
    end
    start(plan, place.queue, popped, raws, taken)
    if plan.is_single or wish.without then
      batch.flush() -- the next choice must see it
      if plan.has_slots then
        workers.took(plan.worker)
      end
      if not budget.pay(budget.LOOK) and plan.count < most then
        return true
      end
    end
    if not place.id and #popped < 2 * room then
      return nil -- that was all of it
    elseif popped[3] then
      -- Next twice as many, within the size estimated from those so far.
      local most_next = plan.bytes > 0 and math.ceil((MOST_BYTES - plan.bytes) * plan.count / plan.bytes)
      plan.chunk = math.max(1, math.min(MOST_IN_CHUNK, 2 * plan.chunk, most_next or MOST_IN_CHUNK))
    end
  end
end

return M
