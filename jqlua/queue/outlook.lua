-- The position of the best waiting job, without writing: nothing is repaired on the way, so it is a lower bound, as in
-- the indexes. A pick repairs them.
local budget = require "jqlua.job.budget"
local glob = require "jqlua.base.glob"
local heads = require "jqlua.queue.heads"
local keys = require "jqlua.base.keys"
local lane_index = require "jqlua.limits.lane_index"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

local PAGE = 20

local function least(key)
  local first = call("ZRANGE", key, 0, 0, "WITHSCORES")
  return tonumber(first[2]), first[1]
end

--- The better of two, of which either may be missing.
local function better(priority, id, other_priority, other_id)
  if not id or other_id and heads.is_before(other_priority, other_id, priority, id) then
    return other_priority, other_id
  end
  return priority, id
end

---@return number? priority
---@return string? id of a job, or a lower bound of it
local function of_queue(name)
  local queue = queues.load(name)
  if queue[queues.PAUSED] ~= 0 then
    return nil
  end
  local priority, id = least(queues.key(queue, states.QUEUED))
  if queues.is_plain(queue) then
    return priority, id
  elseif meta.state[meta.PENDING] ~= 0 or queue[queues.VERSION] < meta.state[meta.ADDED]
    or queues.has(queue, queues.UNSORTED) then
    -- Lanes that an old definition holds are not among those that may start yet.
    return better(priority, id, least(queues.key(queue, states.IN_LANE)))
  end
  return better(priority, id, lane_index.bound(name))
end

--- Of a pattern's queues. Only `*` always has an index, so other patterns use it as well.
local function of_pattern(pattern)
  local priority, id, at
  local looked = 0
  repeat
    local entries = call("ZRANGE", keys.HEADS .. "*", looked, looked + PAGE - 1, "WITHSCORES")
    for i = 1, #entries, 2 do
      local bound, name = tonumber(entries[i + 1]), entries[i]:sub(#queues.LEAST_ID + 1)
      at = queues.bound(entries[i])
      if id and not heads.is_before(bound, at, priority, id) then
        return priority, id
      elseif glob.match(pattern, name) then
        if not budget.pay(budget.STEP) then
          return bound, at -- none of the others is better
        end
        priority, id = better(priority, id, of_queue(name))
      end
    end
    looked = looked + PAGE
  until not entries[1] or not budget.pay(PAGE * budget.LOOK)
  return priority, id
end

---@param entries table[] {name} or {pattern}, as wishes.parse_queues returns them
---@return number? priority nil if no waiting job can start
---@return string? id
function M.best(entries)
  local priority, id
  for _, entry in ipairs(entries) do
    budget.pay(budget.STEP)
    if entry.pattern then
      priority, id = better(priority, id, of_pattern(entry.pattern))
    else
      priority, id = better(priority, id, of_queue(entry.name))
    end
  end
  return priority, id
end

return M
