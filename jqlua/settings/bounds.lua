-- Limits on queues, names, tags and keys of constraints in a namespace (module life.admission). A flag of meta says
-- that a limit is near, so that checking costs nothing while there is room. It is updated when tags or names are added,
-- and once a second.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"

local M = {}

local call = redis.call

-- A limit is near if so many more would exceed it: as many as may come before the flag is updated.
local NEW_NAMES = 2000 -- of a call, and what is in the log
local NEW_TAGS = 32000 -- of a call
local NEW_KEYS = 50000 -- of jobs that start within a second

--- How many keys are in use.
---@return table<string, number> counts by number of the constraint
---@return number total
function M.keys_in_use()
  local counts, total = {}, 0
  for _, number in ipairs(call("HKEYS", keys.CONSTRAINT_NUMBERS)) do
    counts[number] = call("ZCARD", keys.KEYS_OF .. number)
    total = total + counts[number]
  end
  return counts, total
end

local function is_near(values)
  local function left(number, count)
    return (values and values[number] or settings.at(number)) - count
  end
  if left(settings.TAGS, call("ZCARD", keys.TAGS)) < NEW_TAGS
    or left(settings.NAMES, call("ZCARD", keys.STATS_PAIRS)) < NEW_NAMES then
    return true
  elseif meta.state[meta.VERSION] == 0 then
    return false
  end
  local counts, total = M.keys_in_use()
  for _, count in pairs(counts) do
    if left(settings.KEYS, count) < NEW_KEYS then
      return true
    end
  end
  return left(settings.ALL_KEYS, total) < NEW_KEYS
end

--- Updates the flag that a limit is near.
---@param values? number[] settings in the order of storage, if they differ from those that this call read
function M.review(values)
  local near = is_near(values)
  if near ~= meta.state[meta.CROWDED] then
    meta.set(meta.CROWDED, near)
    meta.save_constraints()
  end
end

return M
