-- Gives out jobs: those of a pick, of the pick of a finish, and of assign, which chooses workers, too.
--
-- A plan is what such a call has to do: {wish: as of wishes.of_pick, or of it {worker, count, rounds, wait}; worker:
-- who gets the next job; reply: next_ms, and for each job what is in front, if anything, its document and argument are
-- appended; count and bytes of these jobs; request token or nil, started: what it remembers}, and, where needed,
-- {queue: the only one that is read, is_quiet: no jobs are wanted, has_slots: its worker is pushed to, front(worker):
-- what stands in front of each job}.
local attempts = require "jqlua.life.attempts"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local chooser = require "jqlua.pick.chooser"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local patterns = require "jqlua.pick.patterns"
local places = require "jqlua.pick.places"
local queues = require "jqlua.queue.queues"
local request = require "jqlua.life.request"
local sleepers = require "jqlua.workers.sleepers"
local states = require "jqlua.job.states"
local sweep = require "jqlua.schedules.sweep"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

-- A worker that picks many finishes as many, and old records have to go as fast as they come.
local SWEEP_STEPS = 100
local STEPS_OF_A_JOB = 0.5

-- Lengths of arguments are known only when read. So few jobs are taken at first, many while these are short; surplus
-- jobs are returned, except of lanes.
local SHORT_BYTES = 524288
local FIRST_CHUNK = 8
local CHUNK = 32

---@return table plan
function M.plan(wish, token, reply)
  return {
    wish = wish, worker = wish.worker, reply = reply, count = 0, bytes = 0, request = token,
    started = token and { nil },
  }
end

--- Checks what a pick needs, and makes its plan.
---@param token string|false request
---@return table plan
function M.prepare(wish, token, reply)
  local plan = M.plan(wish, token, reply)
  if wish.queue then
    plan.queue = queues.load(wish.queue)
  else
    patterns.check(wish.wanted, wish.path .. "queues")
  end
  if wish.is_registered then
    local record = workers.registered(wish.worker)
    plan.is_quiet, plan.has_slots = record.k ~= nil, record.u ~= nil
  end
  return plan
end

--- Appends the jobs that this request started before and whose attempts still run: its reply was lost, so their leases
--- begin again. Jobs beyond max_runtime are released. Whether more is ready is unknown: next_ms says to ask again.
---@param kind string of request
---@return boolean # whether it was made before
local function recall(plan, kind)
  local started = request.recall(kind, plan.request)
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
  local reply = plan.reply
  plan.count = #running
  for _, job in ipairs(running) do
    for _, value in ipairs(plan.front and plan.front(job[jobs.WORKER]) or {}) do
      reply[#reply + 1] = value
    end
    reply[#reply + 1] = jobs.document(job, job[jobs.ID])
    reply[#reply + 1] = call("GET", keys.ARGUMENT .. job[jobs.ID])
  end
  return true
end

--- Starts the jobs that were taken from a place; those that are alike, one behind the other, in one step. One that has
--- expired ends. One that does not wait was no member by right, as in a copy of a namespace in use: it only leaves.
---@param popped string[] ids and scores
---@param raws (string|false)[] a record and an argument of each
---@return boolean is_cut whether the call may do no more
local function start(plan, place, popped, raws)
  local worker, has_slots, started, reply = plan.worker, plan.has_slots, plan.started, plan.reply
  local front = plan.front and plan.front(worker)
  local count, bytes, is_cut = plan.count, plan.bytes, false
  local n, i, last = #reply, 1, #popped
  while i < last do
    local first, raw = i, raws[i]
    if bytes >= budget.MOST_BYTES and not place.lane then
      -- Now: whether more is ready, and for which sleepers, depends on it.
      call("ZADD", queues.key(place.queue, states.QUEUED), popped[i + 1], popped[i])
      i = i + 2
    else
      local job = jobs.from_record(popped[i], raw)
      job = job and (job[jobs.STATE] == states.QUEUED or job[jobs.STATE] == states.IN_LANE) and job
      repeat
        bytes, i = bytes + #(raws[i + 1] or ""), i + 2
      until raws[i] ~= raw or bytes >= budget.MOST_BYTES or not job or transition.is_tied(job)
      local is_started = job and attempts.start(job, worker, has_slots, popped, first, i - 2)
      for at = first, is_started and i - 2 or 0, 2 do
        for in_front = 1, front and #front or 0 do
          n = n + 1
          reply[n] = front[in_front]
        end
        reply[n + 1], reply[n + 2] = jobs.document(job, popped[at]), raws[at + 1]
        n, count = n + 2, count + 1
        if started then
          started[count] = popped[at] .. " " .. jobs.token(job)
        end
      end
      is_cut = is_cut or not is_started and not budget.pay(budget.RECORD)
    end
  end
  plan.count, plan.bytes = count, bytes
  return is_cut or bytes >= budget.MOST_BYTES
end

--- Gives out the first jobs of the best places, round by round.
---@return boolean? is_more whether there may be more, or better ones where a search was cut short
local function fill(plan, source)
  local queue, rounds, most, round, is_cut = plan.queue, plan.wish.rounds, plan.wish.count, 1, false
  while plan.count < most do
    local place, is_more
    if queue then
      place, is_more = places.best(queue, true)
    else
      place, is_more = source.choose(plan, rounds[round])
    end
    is_cut = is_cut or is_more
    if place then
      local left, chunk = most - plan.count, plan.count > 0 and plan.bytes < SHORT_BYTES and CHUNK or FIRST_CHUNK
      if left > chunk then
        left = chunk
      end
      local popped, raws = places.take(place, left)
      if not popped[1] then
        return place.id ~= nil -- the index and the queue disagree: never loop on that
      elseif start(plan, place, popped, raws) then
        return true
      elseif not place.id and #popped < 2 * left then
        return false -- that was all of it
      end
    elseif is_more or not rounds[round + 1] then
      break
    else
      round = round + 1
    end
  end
  return is_cut
end

--- Gives out the jobs of a plan, or those that its request got before. Must not raise: writes have begun.
---@param source table kind of request; choose(plan, wanted) finds the best place of one of the wish's rounds, or of all
--- that it wants, and whether a search was cut short; wanted(plan): the queues for which a sleeper is woken, and the
--- names that it refuses
---@return number? ms for how long its worker sleeps, if it was put to sleep
function M.give(plan, source)
  local state, reply, wish, is_quiet = meta.state, plan.reply, plan.wish, plan.is_quiet
  local wait, at = wish.wait, #reply + 1
  reply[at] = 0
  if plan.request and recall(plan, source.kind) then
    return nil
  end
  if wait and state[meta.SLEEPERS] > 0 then
    sleepers.awake(wish.worker, wait.on)
  end
  -- What is due goes first. What is buffered must be seen, if it may concern the choice.
  local is_due, queue = state[meta.NEXT_DUE] <= state[meta.NOW_MS], plan.queue
  local key = queue and queues.key(queue, states.QUEUED)
  if is_due or not key or batch.adds[key] or batch.removals[key] then
    transition.commit()
  end
  if is_due then
    sweep.run(math.max(SWEEP_STEPS, math.floor(wish.count * STEPS_OF_A_JOB)))
  end
  local is_more = not is_quiet and fill(plan, source)
  -- A worker that gets no job may have consumed another's wake-up.
  local wakes = wait and (plan.count > 0 or is_quiet) and state[meta.SLEEPERS] > 0
  local is_ready = is_more
  if wakes and not is_more and (is_quiet or plan.count >= wish.count) then
    local place, is_cut = source.choose(plan, wish.wanted)
    is_ready = place or is_cut
  end
  transition.commit()
  local next_ms = is_more and 0 or meta.next_ms()
  reply[at] = next_ms
  if plan.count > 0 then
    if plan.has_slots then
      workers.took(plan.worker)
    end
    if plan.request then
      request.remember(source.kind, plan.request, table.concat(plan.started, " "))
    end
  end
  if wakes then
    sleepers.go_on(wait.on, is_ready)
  elseif wait and plan.count == 0 and next_ms ~= 0 and not is_quiet then
    return sleepers.sleep(wish.worker, wait.on, wait.ms, source.wanted(plan))
  end
end

local PICK = {
  kind = "p",
  choose = function(plan, wanted)
    return chooser.best(wanted, plan.wish.without)
  end,
  wanted = function(plan)
    return plan.wish.wanted, plan.wish.without
  end,
}

--- Carries out a pick.
---@return table reply
function M.pick(plan)
  local wish, reply = plan.wish, plan.reply
  if wish.is_registered then
    workers.came_by(wish.worker, true)
    if wish.without then
      workers.picks_without(wish.worker, wish.without)
    end
  end
  local at, ms = #reply + 1, M.give(plan, PICK)
  if wish.wait then
    -- For how long to block: never 0, which would be for ever, and hardly at all where it was not put to sleep.
    reply[at] = ms or plan.is_quiet and plan.count == 0 and math.max(1, math.floor(wish.wait.ms)) or 1
  end
  return reply
end

return M
