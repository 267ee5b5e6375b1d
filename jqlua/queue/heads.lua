-- The best waiting job of a queue, of a pattern's queues, of a list of both.
--
-- A pattern has an index of queues: each with a lower bound of its best job. The least entry is checked: if its queue's
-- best job is still no worse than the next entry, it is the best of all; otherwise the entry is moved to where it
-- belongs and the next is checked. Each check repairs one entry, so the work is paid for by the jobs that left since.
-- Queues that are not picked by pattern never repair anything.
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local lane_pick = require "jqlua.limits.lane_pick"
local glob = require "jqlua.base.glob"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- So many fair queues are compared by the job that they give next; further ones by that of their last check.
local MOST_FAIR = 10
local BUILD_STEP = 500
M.MOST_PATTERNS = 200
local UNUSED_MS = 86400000
local NOTE_MS = 3600000

---@return boolean
function M.is_before(priority, id, other_priority, other_id)
  return priority < other_priority or (priority == other_priority and id < other_id)
end

---@return table? head {queue, priority, id, place: of its lane, is_single: take no more than this}
---@return boolean? is_more if the search was cut short
function M.of_queue(name)
  local queue = queues.load(name)
  if queue[queues.PAUSED] ~= 0 then
    return nil
  elseif not queues.is_plain(queue) then
    return lane_pick.best(queue)
  end
  local first = call("ZRANGE", queues.key(queue, states.QUEUED), 0, 0, "WITHSCORES")
  if first[1] then
    return { queue = queue, priority = tonumber(first[2]), id = first[1] }
  end
end

--- Whether a pattern is known or there is room: one that was not used for a day is replaced.
---@return boolean
function M.has_place(pattern)
  if call("HEXISTS", keys.PATTERNS, pattern) == 1 or call("HLEN", keys.PATTERNS) < M.MOST_PATTERNS then
    return true
  end
  return tonumber(call("ZRANGE", keys.PATTERN_USE, 0, 0, "WITHSCORES")[2]) < meta.state[meta.NOW_MS] - UNUSED_MS
end

--- Records now and then that a pattern is used, and drops the one that it replaces.
local function note_use(pattern, is_known)
  local used_ms = tonumber(call("ZSCORE", keys.PATTERN_USE, pattern) or 0)
  if used_ms < meta.state[meta.NOW_MS] - NOTE_MS then
    call("ZADD", keys.PATTERN_USE, meta.state[meta.NOW_MS], pattern)
  end
  if not is_known and call("HLEN", keys.PATTERNS) >= M.MOST_PATTERNS then
    local oldest = call("ZPOPMIN", keys.PATTERN_USE)[1]
    call("HDEL", keys.PATTERNS, oldest)
    call("UNLINK", keys.HEADS .. oldest)
  end
end

--- Registers a pattern or continues building its index, by a bounded step.
---@return boolean complete
function M.build(pattern)
  local at = call("HGET", keys.PATTERNS, pattern)
  note_use(pattern, at)
  if at == "" then
    return true
  elseif not budget.is_left() then
    return false
  end
  local names = call("ZRANGEBYLEX", keys.QUEUE_NAMES, at and "(" .. at or "-", "+", "LIMIT", 0, BUILD_STEP)
  for _, name in ipairs(names) do
    if glob.match(pattern, name) then
      local queue = queues.load(name)
      if queue[queues.HEAD_PRIORITY] ~= meta.NONE then
        call("ZADD", keys.HEADS .. pattern, queue[queues.HEAD_PRIORITY], queue[queues.HEAD_ID] .. name)
      end
    end
  end
  budget.pay(#names * budget.LOOK)
  local is_complete = #names < BUILD_STEP
  call("HSET", keys.PATTERNS, pattern, is_complete and "" or names[#names])
  return is_complete
end

--- Checks that there is room for the patterns. Reads.
---@return string? problem
function M.check_patterns(entries, path)
  for _, entry in ipairs(entries) do
    if entry.pattern and entry.pattern ~= "*" and not M.has_place(entry.pattern) then
      return "FULL " .. path .. ": more than " .. M.MOST_PATTERNS .. " different patterns were in use today"
    end
  end
end

---@return boolean complete
function M.build_all(entries)
  for _, entry in ipairs(entries) do
    if entry.pattern and entry.pattern ~= "*" and not M.build(entry.pattern) then
      return false
    end
  end
  return true
end

---@return table? head {queue, priority, id, bound_priority, bound_id: of the other queues}
---@return boolean? is_more if the search was cut short
function M.of_pattern(pattern)
  local fair, passed = nil, 0
  while budget.pay(budget.STEP) do
    local entries = call("ZRANGE", keys.HEADS .. pattern, passed, passed + 1, "WITHSCORES")
    if not entries[1] then
      return fair
    end
    local name, bound = entries[1]:sub(15), tonumber(entries[2])
    if fair and M.is_before(fair.priority, fair.id, bound, entries[1]:sub(1, 14)) then
      return fair
    end
    local head, is_more = M.of_queue(name)
    if is_more then
      return nil, true
    end
    local bound_priority, bound_id = meta.NONE, ""
    if entries[3] then
      bound_priority, bound_id = tonumber(entries[4]), entries[3]:sub(1, 14)
    end
    if not head then
      queues.set_head(queues.load(name), meta.NONE)
    elseif passed < MOST_FAIR and head.priority == bound and queues.is_fair(head.queue) then
      -- Its entry stays a lower bound: its next job may have any id.
      passed = passed + 1
      if not fair or M.is_before(head.priority, head.id, fair.priority, fair.id) then
        fair = head
        fair.bound_priority, fair.bound_id = fair.priority, fair.id
      end
    elseif not M.is_before(bound_priority, bound_id, head.priority, queues.bound(head.id)) then
      -- Equal is as good: a job that was moved may still be the bound of the queue that it left.
      if fair and M.is_before(fair.priority, fair.id, head.priority, head.id) then
        return fair
      elseif fair and M.is_before(fair.priority, fair.id, bound_priority, bound_id) then
        bound_priority, bound_id = fair.priority, fair.id
      end
      head.bound_priority, head.bound_id = bound_priority, bound_id
      return head
    else
      queues.set_head(head.queue, head.priority, queues.is_fair(head.queue) and passed < MOST_FAIR and queues.LEAST_ID
        or head.id)
    end
  end
  return nil, true
end

local function best_of(entries)
  local best
  for _, entry in ipairs(entries) do
    local head, more
    if entry.pattern then
      head, more = M.of_pattern(entry.pattern)
    else
      head, more = M.of_queue(entry.name)
    end
    if more then
      return nil, true -- it may be better than all others
    end
    if head then
      head.bound_priority, head.bound_id = head.bound_priority or meta.NONE, head.bound_id or ""
      if not best then
        best = head
      else
        local worse = head
        if M.is_before(head.priority, head.id, best.priority, best.id) then
          best, worse = head, best
        end
        -- The same queue through another entry: its bound applies here as well.
        local priority, id = worse.priority, worse.id
        if worse.queue == best.queue then
          priority, id = worse.bound_priority, worse.bound_id
        end
        if M.is_before(priority, id, best.bound_priority, best.bound_id) then
          best.bound_priority, best.bound_id = priority, id
        end
      end
    end
  end
  return best
end

--- The best over all entries, with the bound up to which jobs of its queue may be taken without another check.
---@param entries table[] {name} or {pattern}
---@return table? head
---@return boolean? is_more
function M.best(entries)
  while budget.pay(#entries * budget.LOOK) do
    local head, is_more = best_of(entries)
    -- Queues checked after it may have reserved one of its keys.
    if not head or not head.place or lane_pick.may_start(head) then
      return head, is_more
    end
  end
  return nil, true
end

return M
