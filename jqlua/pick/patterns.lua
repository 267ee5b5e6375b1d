-- Patterns of queues. Each has an index of the queues that match: with a lower bound of the queue's best job (module
-- queue.queues). It is built in steps when the pattern comes first.
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"

local M = {}

local call = redis.call

local BUILD_STEP = 500
local MOST = 200
local UNUSED_MS = 86400000
local NOTE_MS = 3600000

local built = {} -- patterns whose index this call knows to be complete

--- Whether a pattern is known or there is room: one that was not used for a day is replaced.
---@return boolean
local function has_place(pattern)
  if call("HEXISTS", keys.PATTERNS, pattern) == 1 or call("HLEN", keys.PATTERNS) < MOST then
    return true
  end
  return tonumber(call("ZRANGE", keys.PATTERN_USE, "0", "0", "WITHSCORES")[2]) < meta.state[meta.NOW_MS] - UNUSED_MS
end

--- Records now and then that a pattern is used, and drops the one that it replaces.
local function note_use(pattern, is_known)
  local used_ms = tonumber(call("ZSCORE", keys.PATTERN_USE, pattern) or 0)
  if used_ms < meta.state[meta.NOW_MS] - NOTE_MS then
    call("ZADD", keys.PATTERN_USE, meta.state[meta.NOW_MS], pattern)
  end
  if not is_known and call("HLEN", keys.PATTERNS) >= MOST then
    local oldest = call("ZPOPMIN", keys.PATTERN_USE)[1]
    call("HDEL", keys.PATTERNS, oldest)
    call("UNLINK", keys.HEADS .. oldest)
  end
end

--- Registers a pattern or continues building its index, by a bounded step.
---@return boolean complete
function M.build(pattern)
  if built[pattern] then
    return true
  end
  local at = call("HGET", keys.PATTERNS, pattern)
  note_use(pattern, at)
  if at == "" then
    built[pattern] = true
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
  built[pattern] = is_complete
  return is_complete
end

--- Refuses the call if there is no room for the patterns. Reads.
function M.check(wanted, path)
  for _, text in ipairs(wanted) do
    check.refuse(glob.is_pattern(text) and text ~= "*" and not has_place(text)
      and "FULL " .. path .. ": more than " .. MOST .. " different patterns were in use today")
  end
end

return M
