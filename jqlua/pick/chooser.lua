-- The best place over queues, patterns, and lists of both.
--
-- The least entry of a pattern's index is checked: if its queue's best job is still no worse than the next entry, it is
-- the best of all; otherwise the entry is moved to where it belongs and the next is checked. Each check repairs one
-- entry, so the work is paid for by the jobs that left since. Queues that are not picked by pattern never repair
-- anything.
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local glob = require "jqlua.base.glob"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local patterns = require "jqlua.pick.patterns"
local places = require "jqlua.pick.places"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"

local M = {}

local call = redis.call

-- Entries of an index that stay where they are though their queue's place is worse. So many fair queues are compared by
-- the job that they give next; further ones by that of their last check.
local MOST_FAIR = 10
-- And so many queues whose best jobs are of names that are passed over.
local MOST_PASSED = 100
-- Jobs of such names that one choice passes over.
local MOST_LOOKS = 1000

--- The best place of a queue, of a job whose name is not passed over.
---@param without? table<string, boolean> names
---@param looks table {left}
---@return table? place
---@return boolean? is_more if the search was cut short
---@return boolean? is_passed whether its best job is passed over
local function of_queue(queue, without, looks)
  local place, is_more = places.best(queue)
  if not place or not without then
    return place, is_more
  end
  local function accepts(job)
    looks.left = looks.left - 1
    return job and looks.left >= 0 and not without[job[jobs.NAME]]
  end
  if accepts(jobs.read(place.id)) then
    place.is_single = true -- the next one may be passed over
    return place
  end
  return places.find(queue, accepts), false, true
end

--- The best place of a pattern's queues.
local function of_pattern(pattern, without, looks)
  if pattern ~= "*" and not patterns.build(pattern) then
    return nil, true
  end
  places.is_behind() -- before the index is read, to which such lanes may bring queues back
  local best, kept = nil, 0 -- kept: entries in front that stay
  while budget.is_left() do
    local entries = call("ZRANGE", keys.HEADS .. pattern, kept, kept + 1, "WITHSCORES")
    local entry, priority = entries[1], tonumber(entries[2])
    if not entry or looks.left <= 0 or kept >= MOST_PASSED
      or best and rank.is_before(best.priority, best.id, priority, queues.bound(entry)) then
      return best
    end
    local queue = queues.load(entry:sub(#queues.LEAST_ID + 1))
    local place, is_more, is_passed = of_queue(queue, without, looks)
    if is_more then
      return nil, true
    end
    budget.pay(is_passed and 0 or budget.STEP)
    local is_fair = queues.has(queue, queues.FAIR) and kept < MOST_FAIR
    local next_priority, next_id = meta.NONE, ""
    if entries[3] then
      next_priority, next_id = tonumber(entries[4]), queues.bound(entries[3])
    end
    if is_passed or place and is_fair and place.priority == priority then
      -- Its entry stays a lower bound: its next job may have any id.
      kept = kept + 1
      best = places.better(best, place)
    elseif not place then
      queues.set_head(queue, meta.NONE)
    elseif not rank.is_before(next_priority, next_id, place.priority, queues.bound(place.id)) then
      -- Equal is as good: a job that was moved may still be the bound of the queue that it left.
      places.bound(place, next_priority, next_id)
      return places.better(best, place)
    else
      queues.set_head(queue, place.priority, is_fair and queues.LEAST_ID or place.id)
    end
  end
  return nil, true
end

--- The best place of all.
---@param wanted string[] names and patterns of queues
---@param without? table<string, boolean> names of jobs to be passed over. That is rare and temporary: reading the first
--- jobs of the first queues is enough
---@return table? place
---@return boolean? is_more if the search was cut short
function M.best(wanted, without)
  local looks, best = { left = MOST_LOOKS }, nil
  if without then
    batch.flush() -- what was given before must be seen
  end
  if not budget.pay(#wanted * budget.LOOK) then
    return nil, true
  end
  for i = 1, #wanted do
    local text, place, is_more = wanted[i]
    if glob.is_pattern(text) then
      place, is_more = of_pattern(text, without, looks)
    else
      place, is_more = of_queue(queues.load(text), without, looks)
    end
    if is_more then
      return nil, true -- it may be better than all others
    end
    best = places.better(best, place)
  end
  budget.pay((MOST_LOOKS - looks.left) * budget.LOOK)
  return best
end

return M
