-- Handles what is due, as far as a call's budget goes.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"
local dependents = require "jqlua.life.dependents"
local budget = require "jqlua.job.budget"
local due = require "jqlua.base.due"
local batch = require "jqlua.base.batch"
local rollout = require "jqlua.limits.rollout"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local placement = require "jqlua.life.placement"
local removal = require "jqlua.life.removal"
local readers = require "jqlua.links.readers"
local parking = require "jqlua.limits.parking"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local schedules = require "jqlua.schedules.schedules"
local transition = require "jqlua.life.transition"
local failure = require "jqlua.life.failure"
local departure = require "jqlua.life.departure"
local unique = require "jqlua.links.unique"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

local function due_ids(key, limit, until_ms)
  return call("ZRANGEBYSCORE", key, "-inf", until_ms or meta.state[meta.NOW_MS], "LIMIT", 0, limit)
end

--- Handles due jobs of a queue in some states, as long as the budget allows, and writes what came of them.
---@param key string of the set that has them
---@return number count
local function each_of(queue, ids, key, letters, what)
  local count = 0
  jobs.fetch(ids)
  for _, id in ipairs(ids) do
    if not budget.is_left() then
      break
    end
    local ripe = jobs.read(id)
    local price = budget.LOOK
    if ripe and states.is_of(ripe[jobs.STATE], letters) and ripe[jobs.QUEUE] == queue[queues.NAME] then
      price = budget.of_job(ripe)
      what(ripe)
      price = math.max(price, budget.of_job(ripe)) -- it may have gained or lost units
    else
      batch.remove(key, id) -- what was deleted by hand, or copied amid changes, must not stop the sweep
      if ripe and queues.key(queues.load(ripe[jobs.QUEUE]), ripe[jobs.STATE]) == key then
        members.add(queue, ripe[jobs.STATE], meta.state[meta.NOW_MS], id)
      end
    end
    budget.pay(price)
    count = count + 1
  end
  batch.flush()
  return count
end

--- The same of a queue's jobs in a state.
---@return number count
local function each_due(queue, state, limit, what)
  local ids = members.due(queue, state, meta.state[meta.NOW_MS], limit)
  return each_of(queue, ids, queues.key(queue, state), state, what)
end

local function make_ready(job)
  placement.enter(job)
  jobs.save(job)
end

--- Drops a kept result; its job becomes an ordinary done job. A result that is still needed is held.
function M.drop_result(job)
  if readers.any(job) then
    members.add(queues.load(job[jobs.QUEUE]), states.KEPT, readers.HELD, job[jobs.ID])
    return
  end
  call("DEL", keys.OUTCOME .. job[jobs.ID])
  jobs.clear(job, jobs.HAS_OUTCOME)
  if transition.move(job, states.DONE, job[jobs.ENDED_MS]) then
    jobs.save(job)
  end
end

-- Removing a record costs a fraction of what other steps cost.
local REMOVALS = 2

--- Removes old records of one ended state: by age, then by number.
local function forget(queue, letter, steps)
  local limit = steps * REMOVALS
  local ttl_s, max = settings.retention(letter, queue)
  local old = members.due(queue, letter, meta.state[meta.NOW_MS] - ttl_s * 1000, limit)
  local count = math.min(math.max(#old, members.count(queue, letter) - max), limit)
  if count > #old then
    old = members.ids(queue, letter, count)
  end
  return math.ceil(removal.remove(queue, letter, old, true) / REMOVALS)
end

--- When a record of an ended state is to go.
local function ended_due(queue, letter)
  local at_ms = members.first_score(queue, letter)
  if not at_ms then
    return meta.NONE
  end
  local ttl_s, max = settings.retention(letter, queue)
  return members.count(queue, letter) > max and meta.state[meta.NOW_MS] or at_ms + ttl_s * 1000
end

local WAITING_FOR_TIME = { states.SCHEDULED, states.RETRYING }
local MAY_EXPIRE = states.QUEUED .. states.IN_LANE .. states.SCHEDULED .. states.BLOCKED
local KEPT_FOR_READERS = { states.DONE, states.ERROR, states.CANCELLED, states.SKIPPED }

-- Sleepers look as soon as a lease is over. If this one is over for longer, nobody could: Redis stood still, or nobody
-- was there.
local LATE_MS = 2000
-- So long those who hold leases have then to renew them.
M.RESPITE_MS = 15000

--- Until when no lease ends, nor a worker's time, given the end of the first.
---@return number? until_ms nil if they end now
local function respite(end_ms)
  local now = meta.state[meta.NOW_MS]
  local until_ms = (tonumber(call("GET", keys.RESPITE)) or -M.RESPITE_MS) + M.RESPITE_MS
  if end_ms >= until_ms and end_ms < now - LATE_MS then
    call("SET", keys.RESPITE, string.format("%.0f", now))
    until_ms = now + M.RESPITE_MS
  end
  return until_ms > now and until_ms <= now + M.RESPITE_MS and until_ms or nil
end

local function sweep_leases(queue, limit)
  local end_ms = members.first_score(queue, states.RUNNING)
  local until_ms = end_ms and respite(end_ms)
  if until_ms then
    return 0, until_ms
  end
  local done = each_due(queue, states.RUNNING, limit, failure.lapse)
  return done, members.first_score(queue, states.RUNNING)
end

local function sweep_waiting(queue, limit)
  local expiring = keys.EXPIRING .. queue[queues.NAME]
  local done = each_of(queue, due_ids(expiring, limit), expiring, MAY_EXPIRE, failure.expire)
  local next_ms = rank.first_score(expiring) or meta.NONE
  for _, state in ipairs(WAITING_FOR_TIME) do
    done = done + each_due(queue, state, limit - done, make_ready)
    next_ms = math.min(next_ms, members.first_score(queue, state) or meta.NONE)
  end
  return done, next_ms
end

local function sweep_ended(queue, limit)
  local done = each_due(queue, states.KEPT, limit, M.drop_result)
  local kept_ms = members.first_score(queue, states.KEPT)
  local next_ms = kept_ms and kept_ms ~= readers.HELD and kept_ms or meta.NONE
  for _, state in ipairs(KEPT_FOR_READERS) do
    if done < limit and budget.is_left() then
      done = done + forget(queue, state, limit - done)
      batch.flush()
    end
    next_ms = math.min(next_ms, ended_due(queue, state))
  end
  return done, next_ms
end

--- Makes a handler of what sweeps a kind of a queue: that returns the steps taken, and when more is due.
---@param field number of the queue's record, with the bound of the kind
local function of_queue(field, sweep)
  return function(name, limit)
    local queue = queues.load(name)
    budget.pay(budget.RECORD)
    local done, next_ms = sweep(queue, limit)
    queue[field], queue[queues.CHANGED] = next_ms or meta.NONE, true
    due.set(queues.due_member(queue, field), queue[field])
    return done
  end
end

local function sweep_workers(_, limit)
  local ttl_ms = settings.at(settings.WORKER_TTL) * 1000
  local first_ms = rank.first_score(keys.ALIVE)
  local until_ms = first_ms and respite(first_ms + ttl_ms)
  if until_ms then
    due.set(due.WORKERS, until_ms)
    return 0
  end
  local done = 0
  for _, id in ipairs(due_ids(keys.ALIVE, limit, meta.state[meta.NOW_MS] - ttl_ms)) do
    local record = workers.edit(id)
    if record then
      if not workers.is_resting(id) then
        record.x = not record.u and record.x or nil
        for _, job in ipairs(workers.running(id, record.u)) do
          workers.lose(record, job[1])
        end
      end
      -- It gets no more jobs, even if moving its jobs takes more than this call.
      workers.rest(id, record, "unreachable", meta.state[meta.NOW_MS] + ttl_ms)
    end
    local failed = departure.jobs_fail(id, "the worker sent no heartbeat in time", limit - done)
    done = done + math.max(failed, 1)
    if call("EXISTS", keys.HELD .. id) == 0 then
      record = workers.edit(id)
      departure.forget(id)
      if record then
        workers.died(id, record)
      end
    end
    if not budget.pay(budget.RECORD) or done >= limit then
      break
    end
  end
  first_ms = rank.first_score(keys.ALIVE)
  due.set(due.WORKERS, first_ms and first_ms + ttl_ms or meta.NONE)
  return done
end

--- After a change of settings: makes every queue's old records due, a page of queues at a time.
local function review(_, limit)
  local at = call("GET", keys.REVIEW)
  local names = call("ZRANGEBYLEX", keys.QUEUE_NAMES, at and "(" .. at or "-", "+", "LIMIT", 0, limit)
  local looked = 0
  for _, name in ipairs(names) do
    queues.recheck_due(queues.load(name))
    looked = looked + 1
    if not budget.pay(budget.RECORD) then
      break
    end
  end
  if looked == #names and looked < limit then
    call("DEL", keys.REVIEW)
    due.set(due.REVIEW, meta.NONE)
  else
    call("SET", keys.REVIEW, names[looked])
  end
  return looked
end

--- What handles a kind of module base.due: given the name of its subject and a limit, it returns the steps taken.
local HANDLERS = {
  [due.LEASES] = of_queue(queues.DUE_RUNNING, sweep_leases),
  [due.WAITING] = of_queue(queues.DUE_WAITING, sweep_waiting),
  [due.ENDED] = of_queue(queues.DUE_ENDED, sweep_ended),
  [due.WORKERS] = sweep_workers,
  [due.RESTING] = function(id)
    budget.pay(budget.RECORD)
    workers.end_rest(id, workers.edit(id))
    return 1
  end,
  [due.REVIEW] = review,
  [due.KEYS] = function(_, limit)
    local steps = parking.sweep(limit)
    due.set(due.KEYS, rank.first_score(keys.OPENING) or meta.NONE)
    return steps
  end,
  [due.PLACING] = function(name, limit)
    return placement.walk(queues.load(name), limit)
  end,
  [due.DEPENDENTS] = dependents.sweep,
  [due.UNIQUE] = function(key)
    unique.drop(key)
    return 1
  end,
  [due.SCHEDULE] = schedules.fire,
  [due.CONSTRAINTS] = rollout.go_on,
}

--- Does up to limit steps, within the budget, and writes them. Afterwards meta.next_ms says when more is due.
---@return number done
function M.run(limit)
  local state = meta.state
  local done = 0
  budget.pay(budget.RESERVE)
  while done < limit and budget.pay(budget.LOOK) do
    local head = call("ZRANGE", keys.DUE, 0, 0, "WITHSCORES")
    local at_ms = tonumber(head[2]) or meta.NONE
    meta.set_due(at_ms)
    if at_ms > state[meta.NOW_MS] then
      break
    end
    local kind, name = head[1]:sub(1, 1), head[1]:sub(2)
    -- A step that moves nothing counts as well, which bounds the call.
    done = done + math.max(HANDLERS[kind](name, limit - done), 1)
    batch.flush()
  end
  budget.pay(-budget.RESERVE)
  meta.set_due(rank.first_score(keys.DUE) or meta.NONE)
  if state[meta.NEXT_DUE] > state[meta.NOW_MS] then
    due.move_timer() -- otherwise the caller sweeps again
  end
  transition.commit()
  return done
end

return M
