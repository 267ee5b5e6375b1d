-- Pools, for dispatch: workers with the same queues, refused names and key. Those with room are ordered by load.
local apikeys = require "jqlua.access.apikeys"
local budget = require "jqlua.job.budget"
local chooser = require "jqlua.pick.chooser"
local keys = require "jqlua.base.keys"
local rank = require "jqlua.base.rank"

local M = {}

local call = redis.call

--- Pools that have a worker with room, and a valid key if any.
---@return table[] pools {key, wanted, refused (set) or nil}
function M.with_room()
  local open_pools = {}
  local known = call("HGETALL", keys.POOLS)
  for i = 1, #known, 2 do
    local definition = call("EXISTS", keys.POOL .. known[i]) == 1 and cmsgpack.unpack(known[i + 1])
    if definition and (not definition.a or apikeys.lasts(definition.a)) then
      local pool = { key = known[i], wanted = definition.q }
      for _, name in ipairs(definition.r) do
        pool.refused = pool.refused or {}
        pool.refused[name] = true
      end
      open_pools[#open_pools + 1] = pool
    end
  end
  return open_pools
end

--- The least loaded worker of a pool.
---@param without table<string, boolean> workers to skip
---@param count number of these
---@return string? id
---@return number? load
local function least_loaded(pool, without, count)
  budget.pay(count > 0 and budget.LOOK or 0)
  local members = call("ZRANGE", keys.POOL .. pool.key, "0", count, "WITHSCORES")
  for i = 1, #members, 2 do
    if not without[members[i]] then
      return members[i], tonumber(members[i + 1])
    end
  end
end

--- The best place of a job that a worker with room may get, and the least loaded worker who may get it.
---@param open_pools table[] as of with_room
---@param without table<string, boolean> workers to skip
---@param count number of these
---@return table? place
---@return string? worker
---@return boolean? is_more if a search was cut short
function M.choose(open_pools, without, count)
  local best, worker, load, is_more
  for _, pool in ipairs(open_pools) do
    local id, its_load = least_loaded(pool, without, count)
    if id then
      local place, is_cut = chooser.best(pool.wanted, pool.refused)
      is_more = is_more or is_cut
      if place and (not best or rank.is_before(place.priority, place.id, best.priority, best.id)
        or place.id == best.id and its_load < load) then
        best, worker, load = place, id, its_load
        place.is_single = true -- each job needs a choice of its own
      end
    end
  end
  return best, worker, is_more
end

--- What pools with room want, for who sleeps meanwhile.
---@return string[] wanted names and patterns of queues
---@return table|false without empty where one refuses jobs by name: which are behind such may be for it
function M.wanted()
  local wanted, without = {}, false
  for _, pool in ipairs(M.with_room()) do
    for _, text in ipairs(pool.wanted) do
      wanted[#wanted + 1] = text
    end
    without = without or pool.refused and {}
  end
  return wanted, without or false
end

return M
