-- Picks from several queues, or from one that has lanes.
local batch = require "jqlua.base.batch"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local heads = require "jqlua.queue.heads"
local budget = require "jqlua.job.budget"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local plans = require "jqlua.pick.plans"
local pools = require "jqlua.pick.pools"

local M = {}

local call = redis.call

--- Pops up to n of a queue's jobs that come before the bound.
local function pop(head, n)
  local key = queues.key(head.queue, states.QUEUED)
  if head.bound_priority == meta.NONE then
    return call("ZPOPMIN", key, n)
  end
  local waiting = call("ZRANGE", key, 0, n - 1, "WITHSCORES")
  local before = 0
  for i = 1, #waiting, 2 do
    if heads.is_before(head.bound_priority, head.bound_id, tonumber(waiting[i + 1]), queues.bound(waiting[i])) then
      break
    end
    before = before + 1
  end
  return call("ZPOPMIN", key, before)
end

--- The best job of these entries that the plan's worker accepts.
---@return table? head
---@return boolean? is_more
function M.best(entries, plan)
  local without = plan[plans.WISH].without
  if without then
    return pools.best_accepted(entries, without)
  end
  return heads.best(entries)
end

--- Takes the best jobs of several entries.
---@param most? number jobs in the reply
---@return boolean? is_more
function M.take(entries, plan, reply, most)
  while plans.room_for(plan, reply, most) > 0 do
    if plan[plans.EXPIRED] > plans.MOST_EXPIRED then
      return true
    end
    local head, is_more = M.best(entries, plan)
    if not head then
      return is_more
    end
    if head.place or head.is_single then
      plans.start_lane(head, plans.room_for(plan, reply, most), plan, reply)
      if plan[plans.WISH].without then
        batch.flush() -- the next choice must see it
        if not budget.is_left() then
          return true
        end
      end
    else
      local popped = pop(head, plans.room_for(plan, reply, most))
      if not popped[1] then
        return true -- the index and the queue disagree: never loop on that
      end
      plans.start_all(head.queue, popped, plan, reply)
    end
  end
end

local function shuffle(entries, seed)
  for i = #entries, 2, -1 do
    seed = redis.sha1hex(seed)
    local j = tonumber(seed:sub(1, 8), 16) % i + 1
    entries[i], entries[j] = entries[j], entries[i]
  end
end

--- The other orders: entry by entry.
---@return boolean? is_more
local function take_in_order(plan, reply)
  local wish = plan[plans.WISH]
  local entries, each = {}, wish.count
  local n = #wish.entries
  local offset = 0
  if wish.order ~= "ordered" then
    local key = keys.TURN .. redis.sha1hex(cmsgpack.pack(wish.wanted)):sub(1, 16)
    local turn = call("INCR", key)
    call("EXPIRE", key, 86400) -- lists that are not used any more expire
    if wish.order == "round_robin" then
      offset, each = turn - 1, 1
    else
      offset = key .. turn
    end
  end
  for i = 1, n do
    entries[i] = wish.entries[wish.order == "round_robin" and (offset + i - 1) % n + 1 or i]
  end
  if wish.order == "shuffled" then
    shuffle(entries, offset)
  end
  local before
  repeat
    before = #reply
    for _, entry in ipairs(entries) do
      if M.take({ entry }, plan, reply, math.min(wish.count, (#reply - plan[plans.PLACE]) / 2 + each)) then
        return true -- this entry may still have a job that comes before the next one's
      end
    end
  until plans.room_for(plan, reply) == 0 or #reply == before or each > 1
  return false
end

--- Jobs of several queues.
---@return boolean? is_more
function M.take_all(plan, reply)
  local wish = plan[plans.WISH]
  if not heads.build_all(wish.entries) then
    return true
  elseif not wish.order then
    return M.take(wish.entries, plan, reply)
  end
  return take_in_order(plan, reply)
end

return M
