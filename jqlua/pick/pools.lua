-- Pools, for dispatch: workers with the same queues, refused names and key. Those with room are ordered by load.
local apikeys = require "jqlua.access.apikeys"
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local heads = require "jqlua.queue.heads"
local lane_pick = require "jqlua.limits.lane_pick"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local glob = require "jqlua.base.glob"
local queues = require "jqlua.queue.queues"

local M = {}

local call = redis.call

-- How many jobs of refused names are skipped: in a queue, over queues of a pattern, over all together.
local LOOK = 100
local MOST_LOOKS = 1000

local MOST_WITHOUT = 200 -- as the head of assign says

--- Pools that have a worker with room, and a valid key if any.
---@return table[] pools {key, entries, refused (set) or nil, wanted}
function M.with_room()
  local open_pools = {}
  local known = call("HGETALL", keys.POOLS)
  for i = 1, #known, 2 do
    local definition = call("EXISTS", keys.POOL .. known[i]) == 1 and cmsgpack.unpack(known[i + 1])
    if definition and (not definition.a or apikeys.lasts(definition.a)) then
      local pool = { key = known[i], entries = {}, wanted = definition.q }
      for j, text in ipairs(definition.q) do
        pool.entries[j] = glob.is_pattern(text) and { pattern = text } or { name = text }
      end
      for _, name in ipairs(definition.r) do
        pool.refused = pool.refused or {}
        pool.refused[name] = true
      end
      open_pools[#open_pools + 1] = pool
    end
  end
  return open_pools
end

local function first_without(key, without)
  budget.pay(budget.LOOK)
  local members = call("ZRANGE", key, 1, MOST_WITHOUT, "WITHSCORES")
  for i = 1, #members, 2 do
    if not without[members[i]] then
      return members[i], tonumber(members[i + 1])
    end
  end
end

--- The least loaded worker of a pool.
---@param without? table<string, boolean> workers to skip, at most MOST_WITHOUT
---@return string? id
---@return number? load
function M.least_loaded(pool, without)
  local first = call("ZRANGE", keys.POOL .. pool.key, 0, 0, "WITHSCORES")
  if without and first[1] and without[first[1]] then
    return first_without(keys.POOL .. pool.key, without)
  end
  return first[1], tonumber(first[2])
end

--- The best job of a queue without a refused name.
---@param looks table {left}
---@return table? head
---@return boolean? is_more
---@return boolean? is_empty
local function accepted(name, refused, looks)
  local head, is_more = heads.of_queue(name)
  if not head then
    return nil, is_more, not is_more
  end
  local function accepts(job)
    looks.left = looks.left - 1
    return job and not refused[job[jobs.NAME]]
  end
  local queue = head.queue
  if accepts(jobs.read(head.id)) then
    head.is_single = true -- the next one may be refused
    return head
  elseif not queues.is_plain(queue) then
    return lane_pick.find(queue, LOOK, accepts)
  end
  local waiting = call("ZRANGE", queues.key(queue, states.QUEUED), 1, math.min(LOOK, looks.left) - 1, "WITHSCORES")
  for i = 1, #waiting, 2 do
    if accepts(jobs.read(waiting[i])) then
      return { queue = queue, priority = tonumber(waiting[i + 1]), id = waiting[i], is_single = true }
    end
  end
end

local function is_worse(best, priority, id)
  return best and heads.is_before(best.priority, best.id, priority, id)
end

--- The best job that has none of these names. That is rare and temporary: reading the first jobs of the first queues
--- is enough. It ignores the call's budget, since the next call would read the same; callers that want many jobs stop
--- by the budget.
---@param entries table[] {name} or {pattern}
---@param refused table<string, boolean>
---@return table? head
---@return boolean? is_more
function M.best_accepted(entries, refused)
  local best, is_more
  local looks = { left = MOST_LOOKS }
  local function look_at(name)
    local head, more, is_empty = accepted(name, refused, looks)
    if head and not is_worse(best, head.priority, head.id) then
      best = head
    end
    is_more = is_more or more
    return is_empty
  end
  for _, entry in ipairs(entries) do
    local bounds = entry.pattern and call("ZRANGE", keys.HEADS .. entry.pattern, 0, LOOK - 1, "WITHSCORES") or {}
    for i = 1, #bounds, 2 do
      if looks.left <= 0 or is_worse(best, tonumber(bounds[i + 1]), bounds[i]:sub(1, #queues.LEAST_ID)) then
        break
      end
      local name = bounds[i]:sub(#queues.LEAST_ID + 1)
      if look_at(name) then
        queues.set_head(queues.load(name), meta.NONE) -- otherwise it stays in front of queues with jobs
      end
    end
    if entry.name and looks.left > 0 then
      look_at(entry.name)
    end
  end
  budget.pay((MOST_LOOKS - looks.left) * budget.LOOK)
  if is_more then
    return nil, true -- it may be better than all others
  end
  return best
end

---@return table? head
---@return boolean? is_more
function M.best(pool)
  if pool.refused then
    return M.best_accepted(pool.entries, pool.refused)
  end
  return heads.best(pool.entries)
end

return M
