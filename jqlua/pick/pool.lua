-- Dispatch looks at pools: workers with the same queues, the same refused names and the same key, those with room
-- ordered by load.
local apikey = require "jqlua.access.apikey"
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local heads = require "jqlua.queue.heads"
local lanes = require "jqlua.limits.lane_pick"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local glob = require "jqlua.base.glob"
local queue = require "jqlua.queue.record"

local M = {}

local call = redis.call

-- How far a pool that refuses names looks past jobs of such names, in a queue and over queues.
local LOOK = 100

M.MOST_WITHOUT = 200

--- Pools that have a worker with room, and whose key, if they have one, is good.
---@return table[] pools {key, entries, refused (set) or nil, wanted}
function M.with_room()
  local found = {}
  local known = call("HGETALL", keys.POOLS)
  for i = 1, #known, 2 do
    local definition = call("EXISTS", keys.POOL .. known[i]) == 1 and cmsgpack.unpack(known[i + 1])
    if definition and (not definition.a or apikey.lasts(definition.a)) then
      local pool = { key = known[i], entries = {}, wanted = definition.q }
      for j, text in ipairs(definition.q) do
        pool.entries[j] = glob.is_pattern(text) and { pattern = text } or { name = text }
      end
      for _, name in ipairs(definition.r) do
        pool.refused = pool.refused or {}
        pool.refused[name] = true
      end
      found[#found + 1] = pool
    end
  end
  return found
end

---@cold
local function first_without(key, without)
  budget.pay(budget.LOOK)
  local found = call("ZRANGE", key, 1, M.MOST_WITHOUT, "WITHSCORES")
  for i = 1, #found, 2 do
    if not without[found[i]] then
      return found[i], tonumber(found[i + 1])
    end
  end
end

--- The least loaded worker of a pool.
---@param without? table<string, boolean> those that are passed over, at most MOST_WITHOUT
---@return string? id
---@return number? load
function M.least_loaded(pool, without)
  local first = call("ZRANGE", keys.POOL .. pool.key, 0, 0, "WITHSCORES")
  if without and first[1] and without[first[1]] then
    return first_without(keys.POOL .. pool.key, without)
  end
  return first[1], tonumber(first[2])
end

--- The best job of a queue whose name is not refused.
---@return table? head
---@return boolean? is_more
local function accepted(name, refused)
  local owner = queue.load(name)
  if owner[queue.PAUSED] ~= 0 then
    return nil
  end
  if not queue.is_plain(owner) then
    return lanes.find(name, LOOK, function(of)
      return not refused[of[job.NAME]]
    end)
  end
  local waiting = call("ZRANGE", queue.key(owner, states.QUEUED), 0, LOOK - 1, "WITHSCORES")
  for i = 1, #waiting, 2 do
    local of = job.read(waiting[i])
    if not budget.pay(budget.LOOK) then
      return nil, true
    elseif of and not refused[of[job.NAME]] then
      return { queue = owner, priority = tonumber(waiting[i + 1]), id = waiting[i] }
    end
  end
end

local function better(a, b)
  if a and b then
    return heads.is_before(a.priority, a.id, b.priority, b.id) and a or b
  end
  return a or b
end

--- The best job for workers that do not know some names. Such pools are rare and short-lived: a look at the
--- first jobs of the first queues is enough.
local function best_accepted(pool)
  local best, is_more
  local function look_at(name)
    local head, more = accepted(name, pool.refused)
    best, is_more = better(best, head), is_more or more
  end
  for _, entry in ipairs(pool.entries) do
    if entry.name then
      look_at(entry.name)
    else
      for _, member in ipairs(call("ZRANGE", keys.HEADS .. entry.pattern, 0, LOOK - 1)) do
        look_at(member:sub(15))
      end
    end
  end
  if is_more then
    return nil, true -- what is there may be better than all others
  end
  return best
end

---@return table? head
---@return boolean? is_more
function M.best(pool)
  if pool.refused then
    return best_accepted(pool)
  end
  return heads.best(pool.entries)
end

return M
