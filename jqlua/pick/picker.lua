-- Picks jobs for a worker.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local lane_pick = require "jqlua.limits.lane_pick"
local batch = require "jqlua.base.batch"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local starts = require "jqlua.life.starts"
local sleepers = require "jqlua.pick.sleepers"
local pulse = require "jqlua.life.pulse"
local sweep = require "jqlua.life.sweep"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.pick.workers"
local plans = require "jqlua.pick.plans"
local several = require "jqlua.pick.several"

local M = {}

local call = redis.call

-- A worker that picks many finishes as many, and old records have to go as fast as they come.
local SWEEP_STEPS = 100
local STEPS_OF_A_JOB = 0.5

--- The jobs that this request got before. Whether more is ready is unknown: next_ms says to pick again.
local function repeat_jobs(reply, running, wait)
  reply[#reply + 1] = wait and 1 or 0
  for _, job in ipairs(running) do
    local n = #reply
    reply[n + 1], reply[n + 2] = jobs.document(job), call("GET", keys.ARGUMENT .. job[jobs.ID])
  end
end

--- Whether more is ready, or may be because the search was cut short.
local function is_more_ready(plan)
  local head, is_more = several.best(plan[plans.WISH].entries, plan)
  return head ~= nil or is_more == true
end

--- Prepares a pick with rare fields, before jobs are chosen.
---@return table[]? running the jobs that this request got before
local function prepare(plan)
  local wish = plan[plans.WISH]
  if plan[plans.IS_REGISTERED] then
    workers.seen(wish.worker)
    if wish.without then
      workers.picks_without(wish.worker, wish.without)
    end
    plan[plans.IS_QUIET] = workers.is_quiet(wish.worker)
  end
  local running = plan[plans.REQUEST] and starts.recall("p", plan[plans.REQUEST])
  if running then
    transition.commit()
    return running
  end
  if wish.wait and meta.state[meta.SLEEPERS] > 0 then
    sleepers.awake(wish.worker, wish.wait.on)
  end
end

--- Ends what prepare began.
local function settle(plan, reply, wakes, is_ready)
  local wish = plan[plans.WISH]
  local is_nothing = #reply == plan[plans.PLACE]
  if not is_nothing then
    if plan[plans.IS_REGISTERED] then
      workers.took(wish.worker)
    end
    if plan[plans.STARTED] and plan[plans.STARTED][1] then
      starts.remember("p", plan[plans.REQUEST], plan[plans.STARTED])
    end
  end
  local wait, place = wish.wait, plan[plans.PLACE]
  if wakes then
    sleepers.go_on(wait.on, is_ready)
  end
  if wait then
    -- For how long to block: never 0, which would be for ever, and hardly at all where it was not put to sleep.
    if plan[plans.IS_QUIET] then
      reply[place] = math.max(1, math.floor(wait.ms))
    elseif not wakes and is_nothing and reply[place] ~= 0 then
      reply[place] = sleepers.sleep(wish.worker, wait.on, wait.ms, wish.wanted, wish.without)
    else
      reply[place] = 1
    end
  end
end

--- The common case: one queue, with only its plain set to read.
---@param place number of next_ms in the reply
---@return boolean? is_more
local function take_plain(queue, plan, reply, place)
  local count = plan[plans.WISH].count
  local left = queue[queues.PAUSED] == 0 and math.min(count, plan[plans.CHUNK]) or 0
  while left > 0 do
    if plan[plans.EXPIRED] > plans.MOST_EXPIRED then
      return true
    end
    local more = call("ZPOPMIN", queues.key(queue, states.QUEUED), left)
    if not more[1] then
      return nil
    end
    plans.start_all(queue, more, plan, reply)
    if #more < 2 * left or #reply == place + 2 * count then
      return nil
    end
    left = plans.room_for(plan, reply)
  end
end

--- Carries a plan out. Must not raise: writes have begun.
---@param reply table next_ms, document, argument, ... are appended to it
---@param raw string|false|nil the record of the plan's only queue, if it was read already
---@return table reply
function M.run(plan, reply, raw)
  local wish = plan[plans.WISH]
  local state = meta.state
  local is_plain = not (plan[plans.IS_REGISTERED] or wish.wait or plan[plans.REQUEST])
  local running = not is_plain and prepare(plan)
  if running then
    repeat_jobs(reply, running, wish.wait)
    return reply
  end
  local place = #reply + 1 -- of next_ms
  plan[plans.PLACE] = place
  reply[place] = 0
  if raw and wish.queue then
    queues.decode(wish.queue, raw)
  end
  local queue = wish.queue and queues.load(wish.queue)
  local is_due = state[meta.NEXT_DUE] <= state[meta.NOW_MS]
  local is_first = pulse.is_due()
  if is_due or is_first or not queue or batch.adds[queues.key(queue, states.QUEUED)]
    or not queues.is_plain(queue) and not lane_pick.sees_all(queue) then
    transition.commit() -- what this call wrote before must be visible
  end
  if is_first then
    pulse.note()
  end
  if is_due then
    sweep.run(math.max(SWEEP_STEPS, math.floor(wish.count * STEPS_OF_A_JOB)))
  end
  local is_more
  local leaves = plan[plans.IS_QUIET] -- gets no job and does not sleep
  if leaves then
    is_more = false
  elseif queue and queues.is_plain(queue) then
    is_more = take_plain(queue, plan, reply, place)
  elseif state[meta.VERSION] > 0 and lane_pick.is_behind() then
    is_more = true
  elseif queue then
    is_more = several.take(wish.entries, plan, reply)
  else
    is_more = several.take_all(plan, reply)
  end
  -- A worker that leaves may have consumed another's wake-up.
  local wakes = wish.wait and (#reply > place or leaves) and state[meta.SLEEPERS] > 0
  local is_ready = wakes and (leaves or plans.room_for(plan, reply) == 0) and is_more_ready(plan)
  transition.commit()
  reply[place] = (is_more or plans.is_full(plan)) and 0 or meta.next_ms()
  if not is_plain then
    settle(plan, reply, wakes, is_ready)
  end
  return reply
end

return M
