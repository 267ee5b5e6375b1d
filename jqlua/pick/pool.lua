-- Dispatch looks at pools: workers with the same queues, the same refused names and the same key, those with room
-- ordered by load.
local apikey = require "jqlua.access.apikey"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local heads = require "jqlua.queue.heads"
local lanes = require "jqlua.limits.lane_pick"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local glob = require "jqlua.base.glob"
local queue = require "jqlua.queue.record"
local wishes = require "jqlua.pick.wish"

local M = {}

local call = redis.call

-- How far who refuses names looks past jobs of such names: in a queue, over queues of a pattern, over all together.
local LOOK = 100
local MOST_LOOKS = 1000

M.MOST_WITHOUT = 200
M.MOST_GUESTS = 200

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

local GUEST = "a list of worker, free slots and max_jobs"

---@cold
---@return string? problem
local function check_guests(guests, path)
  if not check.is_list(guests, 1, M.MOST_GUESTS) then
    return check.problem(path, "a list of 1 to " .. M.MOST_GUESTS .. " workers", guests)
  end
  for i, guest in ipairs(guests) do
    local at = path .. "[" .. i - 1 .. "]"
    if not check.is_list(guest, 3, 3) then
      return check.problem(at, GUEST, guest)
    elseif not check.is_name(guest[1]) then
      return check.problem(at .. "[0]", check.NAME, guest[1])
    elseif not check.is_integer(guest[2], 1, 1000) then
      return check.problem(at .. "[1]", "an integer from 1 to 1000", guest[2])
    elseif not check.is_integer(guest[3], guest[2], 1000) then
      return check.problem(at .. "[2]", "an integer from " .. guest[2] .. " to 1000", guest[3])
    end
  end
end

---@cold
--- Pools of workers that are registered in other partitions of the system, as who calls says.
---@param spec any [[queues, refused names, [[worker, free slots, max_jobs], ...]], ...]
---@return table[]? pools as of with_room, with guests
---@return string? problem
function M.of_guests(spec)
  if not check.is_list(spec, 0, M.MOST_GUESTS) then
    return nil, check.problem("guests", "a list of at most " .. M.MOST_GUESTS .. " pools", spec)
  end
  local found = {}
  for i, one in ipairs(spec) do
    local path = "guests[" .. i - 1 .. "]"
    if not check.is_list(one, 3, 3) then
      return nil, check.problem(path, "a list of queues, refused names and workers", one)
    end
    local entries, problem = wishes.parse_queues(one[1], path .. "[0]")
    problem = problem or heads.check_patterns(entries, path .. "[0]")
      or not check.is_list(one[2], 0, 1000) and check.problem(path .. "[1]", "a list of names", one[2])
      or check.distinct(one[2], path .. "[1]", check.is_name, check.NAME) or check_guests(one[3], path .. "[2]")
    if problem then
      return nil, problem
    end
    local pool = { entries = entries, guests = one[3], wanted = type(one[1]) == "string" and { one[1] } or one[1] }
    for _, name in ipairs(one[2]) do
      pool.refused = pool.refused or {}
      pool.refused[name] = true
    end
    found[i] = pool
  end
  return found
end

---@cold
local function least_loaded_guest(pool, without)
  local id, load
  for _, guest in ipairs(pool.guests) do
    local its_load = (guest[3] - guest[2]) / guest[3]
    if guest[2] > 0 and not (without and without[guest[1]]) and (not load or its_load < load) then
      id, load = guest[1], its_load
    end
  end
  return id, load
end

---@cold
--- A guest got a job.
function M.came(pool, id)
  for _, guest in ipairs(pool.guests) do
    if guest[1] == id then
      guest[2] = guest[2] - 1
      return
    end
  end
end

--- The least loaded worker of a pool.
---@param without? table<string, boolean> those that are passed over, at most MOST_WITHOUT
---@return string? id
---@return number? load
function M.least_loaded(pool, without)
  if pool.guests then
    return least_loaded_guest(pool, without)
  end
  local first = call("ZRANGE", keys.POOL .. pool.key, 0, 0, "WITHSCORES")
  if without and first[1] and without[first[1]] then
    return first_without(keys.POOL .. pool.key, without)
  end
  return first[1], tonumber(first[2])
end

--- The best job of a queue whose name is not refused.
---@param looks table {left}
---@return table? head
---@return boolean? is_more
---@return boolean? is_empty
local function accepted(name, refused, looks)
  local head, is_more = heads.of_queue(name)
  if not head then
    return nil, is_more, not is_more
  end
  local function accepts(of)
    looks.left = looks.left - 1
    return of and not refused[of[job.NAME]]
  end
  local owner = head.queue
  if accepts(job.read(head.id)) then
    head.is_single = true -- what stands behind it may be refused
    return head
  elseif not queue.is_plain(owner) then
    return lanes.find(owner, LOOK, accepts)
  end
  local waiting = call("ZRANGE", queue.key(owner, states.QUEUED), 1, math.min(LOOK, looks.left) - 1, "WITHSCORES")
  for i = 1, #waiting, 2 do
    if accepts(job.read(waiting[i])) then
      return { queue = owner, priority = tonumber(waiting[i + 1]), id = waiting[i], is_single = true }
    end
  end
end

local function is_worse(best, priority, id)
  return best and heads.is_before(best.priority, best.id, priority, id)
end

--- The best job that has none of these names. Who asks for this does so rarely and not for long: a look at the
--- first jobs of the first queues is enough. That does not end with the call's budget, since the next call would
--- look at the same: so whoever asks for many stops by it.
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
      if looks.left <= 0 or is_worse(best, tonumber(bounds[i + 1]), bounds[i]:sub(1, #queue.LEAST_ID)) then
        break
      end
      local name = bounds[i]:sub(#queue.LEAST_ID + 1)
      if look_at(name) then
        queue.set_head(queue.load(name), meta.NONE) -- else it stays in front of those that have jobs
      end
    end
    if entry.name and looks.left > 0 then
      look_at(entry.name)
    end
  end
  budget.pay((MOST_LOOKS - looks.left) * budget.LOOK)
  if is_more then
    return nil, true -- what is there may be better than all others
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
