-- Picks jobs for the registered workers that are pushed to, least loaded first. For JQ servers.
--
-- @arg    master   name                the server that delivers them
-- @arg    limit    integer? 1..1000 = 100  how many, at most
-- @arg    request  token?              the same token gives the same jobs again
-- @arg    wait     Wait?               where the server is woken when there is nothing
-- @arg    without  set<worker>? 0..200    workers that get nothing for now
-- @reply  assigned                     {next_ms, worker, url, secrets, key, document, argument, worker, ...}
-- @errors INVALID field
-- @cost   for each job a look at the head of each pool that has room
-- @flags  drain, function
-- @role   server
-- @over   none
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local attempts = require "jqlua.life.attempts"
local jobs = require "jqlua.job.jobs"
local heads = require "jqlua.queue.heads"
local lane_pick = require "jqlua.limits.lane_pick"
local lane_start = require "jqlua.limits.lane_start"
local batch = require "jqlua.base.batch"
local plans = require "jqlua.pick.plans"
local wishes = require "jqlua.pick.wishes"
local pools = require "jqlua.pick.pools"
local sleepers = require "jqlua.pick.sleepers"
local starts = require "jqlua.life.starts"
local pulse = require "jqlua.life.pulse"
local sweep = require "jqlua.life.sweep"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.pick.workers"

local SWEEP_STEPS = 100

--- The best job that a worker with room may get, for the least loaded worker of all pools.
local function choose(open_pools, without)
  local best, holder, load, is_more
  for _, candidate in ipairs(open_pools) do
    local id, its_load = pools.least_loaded(candidate, without)
    if id then
      local head, more = pools.best(candidate)
      is_more = is_more or more
      if head and (not best or heads.is_before(head.priority, head.id, best.priority, best.id)
        or (head.id == best.id and its_load < load)) then
        best, holder, load = head, id, its_load
      end
    end
  end
  return best, holder, is_more
end

local function wanted_by(open_pools)
  local wanted = {}
  for _, candidate in ipairs(open_pools) do
    if pools.least_loaded(candidate) then
      for _, text in ipairs(candidate.wanted) do
        wanted[#wanted + 1] = text
      end
    end
  end
  return wanted
end

local spec = arguments.spec(HEAD)
local limit = spec.limit or 100
if spec.wait ~= nil then
  check.refuse(wishes.check_wait(spec.wait, "wait"))
  check.refuse(spec.wait.on ~= workers.CHANNEL
    and check.problem("wait.on", '"' .. workers.CHANNEL .. '", the channel of masters', spec.wait.on))
end
local without = {}
for _, id in ipairs(spec.without or {}) do
  without[id] = true
end

local reply, entries, bytes = { 0 }, { nil }, 0
local function append(job, holder, document)
  local n = #reply
  local record = workers.load(holder)
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = holder, record.u or "", record.s or "", record.a or ""
  reply[n + 5], reply[n + 6] = document, redis.call("GET", keys.ARGUMENT .. job[jobs.ID])
  bytes = bytes + #(reply[n + 6] or "")
end

local running = spec.request and starts.recall("a", spec.request)
for _, job in ipairs(running or {}) do
  append(job, job[jobs.WORKER], jobs.document(job))
end
if running then
  return reply
elseif spec.wait and meta.state[meta.SLEEPERS] > 0 then
  sleepers.awake(spec.master, workers.CHANNEL)
end
if pulse.is_due() then
  pulse.note()
end
if meta.state[meta.NEXT_DUE] <= meta.state[meta.NOW_MS] then
  sweep.run(SWEEP_STEPS)
end
local open_pools = pools.with_room()
local is_more
if meta.state[meta.VERSION] > 0 and lane_pick.is_behind() then
  open_pools, is_more = {}, true
end
for i = #open_pools, 1, -1 do
  if not heads.build_all(open_pools[i].entries) then
    is_more = true
    table.remove(open_pools, i)
  end
end
local assigned, expired = 0, 0
while assigned < limit do
  local head, holder, more = choose(open_pools, without)
  is_more = is_more or more
  if not head then
    break
  end
  local job = lane_start.take(head, 1)[1]
  budget.pay(budget.LOOK)
  local document = job and attempts.start(job, holder, true)
  -- The next choice needs to see what this worker now holds.
  batch.flush()
  workers.took(holder)
  if document then
    append(job, holder, document)
    assigned = assigned + 1
    entries[assigned] = starts.entry(job[jobs.ID], job[jobs.ATTEMPT])
    if bytes >= plans.MOST_BYTES or not budget.is_left() then
      is_more = true
      break
    end
  else
    expired = expired + 1
    if expired > plans.MOST_EXPIRED then
      is_more = true
      break
    end
  end
end
transition.commit()
if assigned > 0 and meta.state[meta.SLEEPERS] > 0 then
  -- Sleepers may have asked for less than workers have room for now.
  sleepers.want(workers.CHANNEL, wanted_by(pools.with_room()))
end
if spec.wait then
  if assigned == 0 and not is_more and meta.next_ms() ~= 0 then
    sleepers.sleep(spec.master, workers.CHANNEL, spec.wait.ms, wanted_by(open_pools), false)
  elseif assigned > 0 and meta.state[meta.SLEEPERS] > 0 then
    sleepers.go_on(workers.CHANNEL, assigned == limit)
  end
end
if spec.request and assigned > 0 then
  starts.remember("a", spec.request, entries)
end
reply[1] = is_more and 0 or meta.next_ms()
return reply
