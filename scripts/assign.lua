-- Picks jobs for the registered workers that are pushed to, least loaded first. For JQ servers.
--
-- @arg    master   name                the server that delivers them
-- @arg    limit    integer? 1..1000 = 100  how many, at most
-- @arg    request  token?              the same token gives the same jobs again
-- @arg    wait     Wait?               where the server is woken when there is nothing
-- @arg    without  list<worker>? 0..1000   workers that get nothing for now
-- @reply  assigned                     {next_ms, worker, url, secrets, key, document, argument, worker, ...}
-- @errors INVALID field
-- @cost   for each job a look at the head of each pool that has room
-- @flags  drain, function
-- @role   server
-- @over   none
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local meta = require "jqlua.base.meta"
local picker = require "jqlua.pick.picker"
local plans = require "jqlua.pick.plans"
local pools = require "jqlua.pick.pools"
local request = require "jqlua.life.request"
local sleepers = require "jqlua.pick.sleepers"
local wishes = require "jqlua.pick.wishes"
local workers = require "jqlua.pick.workers"

local spec = arguments.spec("master limit request wait without")
local limit = spec.limit == nil and 100 or spec.limit
if not check.is_name(spec.master) then
  return redis.error_reply(check.problem("master", check.NAME, spec.master))
elseif not check.is_integer(limit, 1, 1000) then
  return redis.error_reply(check.problem("limit", "an integer from 1 to 1000", limit))
end
if spec.request ~= nil and not request.is_token(spec.request) then
  return redis.error_reply(check.problem("request", request.TOKEN, spec.request))
end
check.refuse(spec.wait ~= nil and wishes.check_wait(spec.wait, "wait"))
if spec.wait and spec.wait.on ~= workers.CHANNEL then
  local expected = '"' .. workers.CHANNEL .. '", the channel of masters'
  return redis.error_reply(check.problem("wait.on", expected, spec.wait.on))
end
local skipped = {}
if spec.without ~= nil then
  if not check.is_list(spec.without, 0, pools.MOST_WITHOUT) then
    local expected = "a list of at most " .. pools.MOST_WITHOUT .. " workers"
    return redis.error_reply(check.problem("without", expected, spec.without))
  end
  check.refuse(check.distinct(spec.without, "without", check.is_name, check.NAME))
  for _, id in ipairs(spec.without) do
    skipped[id] = true
  end
end

local plan = plans.of(spec.master, limit)
plan.is_registered, plan.is_single, plan.wait, plan.who, plan.reply = true, true, spec.wait, spec.master, {}
if spec.request then
  plans.remember(plan, "a", spec.request)
end
function plan.front(worker)
  local record = workers.load(worker)
  return { worker, record.u or "", record.s or "", record.a or "" }
end
local open_pools, is_more
--- The best job that a worker with room may get, for the least loaded worker of all pools.
local function choose()
  local place, worker, is_cut = pools.choose(open_pools, skipped)
  plan.worker, is_more = worker or plan.worker, is_more or is_cut
  return place, is_cut
end
picker.give(plan, {
  fill = function()
    open_pools = pools.with_room()
    return plans.fill(plan, limit, choose) or is_more
  end,
  choose = choose,
  wanted = function()
    return pools.wanted(open_pools)
  end,
})
if plan.count > 0 and meta.state[meta.SLEEPERS] > 0 then
  -- Sleepers may have asked for less than workers have room for now.
  sleepers.want(workers.CHANNEL, pools.wanted(pools.with_room()))
end
return plan.reply
