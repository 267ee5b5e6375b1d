-- Limits on queues, names and tags in a namespace (module life.admission). A flag of meta says that a limit is near, so
-- that checking costs nothing while there is room. It is updated when tags or names are added.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"

local M = {}

local call = redis.call

-- A limit is near if so many more would exceed it: as many as may come before the flag is updated.
local NEW_NAMES = 2000 -- of a call, and what is in the log
local NEW_TAGS = 32000 -- of a call

local function is_near(values)
  local function left(number, count)
    return (values and values[number] or settings.at(number)) - count
  end
  return left(settings.TAGS, call("ZCARD", keys.TAGS)) < NEW_TAGS
    or left(settings.NAMES, call("ZCARD", keys.STATS_PAIRS)) < NEW_NAMES
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
