-- Picks jobs for the registered workers that are pushed to, least loaded first. For JQ servers.
--
-- @arg    master   name                the server that delivers them
-- @arg    limit    integer? 1..1000 = 100  how many, at most
-- @arg    request  token?              the same token gives the same jobs again
-- @arg    wait     Wait?               where the server is woken when there is nothing
-- @arg    without  set<worker>? 0..200    workers that get nothing for now
-- @reply  assigned                     {next_ms, worker, url, secrets, key, document, argument, worker, ...}
-- @errors INVALID field
-- @flags  drain, function
-- @role   server
-- @over   none
local arguments = require "jqlua.base.arguments"
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local meta = require "jqlua.base.meta"
local picker = require "jqlua.pick.picker"
local pools = require "jqlua.pick.pools"
local sleepers = require "jqlua.workers.sleepers"
local wishes = require "jqlua.pick.wishes"
local workers = require "jqlua.workers.workers"

local spec = arguments.spec(HEAD)
if spec.wait ~= nil then
  wishes.check_wait(spec.wait, "wait")
  check.refuse(spec.wait.on ~= workers.CHANNEL
    and check.problem("wait.on", '"' .. workers.CHANNEL .. '", the channel of masters', spec.wait.on))
end
local without = {}
for _, id in ipairs(spec.without or {}) do
  without[id] = true
end

local wish = { worker = spec.master, count = spec.limit or 100, wait = spec.wait, rounds = { false } }
local plan = picker.plan(wish, spec.request, {})
plan.has_slots = true
function plan.front(worker)
  local record = workers.load(worker)
  return { worker, record.u or "", record.s or "", record.a or "" }
end
local open_pools
picker.give(plan, {
  kind = "a",
  --- The best job that a worker with room may get, for the least loaded worker of all pools.
  choose = function()
    open_pools = open_pools or pools.with_room()
    if plan.count > 0 then -- the choice must see what was given
      batch.flush()
      workers.took(plan.worker)
    end
    local place, worker, is_more = pools.choose(open_pools, without, #(spec.without or {}))
    plan.worker = worker or plan.worker
    return place, is_more
  end,
  wanted = pools.wanted,
})
if plan.count > 0 and meta.state[meta.SLEEPERS] > 0 then
  -- Sleepers may have asked for less than workers have room for now.
  sleepers.want(workers.CHANNEL, pools.wanted())
end
return plan.reply
