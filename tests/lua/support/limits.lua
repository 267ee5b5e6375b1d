-- What specs of constraints do again and again, as functions for one namespace.
local space = require "support.space"

local M = {}

local with = space.with

--- Jobs limited at once: those of one name, or those that match.
---@return function limit(concurrency, match, more)
function M.at_once(jq)
  return function(concurrency, match, more)
    return jq:constrain(with({ id = "c", concurrency = concurrency }, more), match or { name = "a" })
  end
end

--- Starts limited in time.
---@return function limit(rate, more, match) rate as {limit, period}
---@return function enqueue(count) jobs whose leases outlast every window here
---@return function starts_at(...) how many start at each of these moments, in seconds since the beginning
function M.in_time(jq)
  local function limit(rate, more, match)
    return jq:constrain(with({ id = "c", rate = rate }, more), match or { name = "a" })
  end
  local function enqueue(count)
    return jq:enqueue_many({ name = "a", timeout = 100000 }, count)
  end
  local function starts_at(...)
    local counts = {}
    for i, second in ipairs({ ... }) do
      jq:set_clock(space.START_MS + second * 1000)
      counts[i] = #jq:start("a")
    end
    return counts
  end
  return limit, enqueue, starts_at
end

M.LONG_S = 100000 -- leases that outlast every test

--- Jobs of queue q which are limited by the tags that they carry.
---@return function limit(id, concurrency, more)
---@return function tagged(tags, argument, more)
---@return function tagged_each(tags, count, more) one job for each value from 1 to count
function M.by_tags(jq)
  local function spec_of(tags, more)
    return with({ name = "job", queue = "q", tags = tags[1] and tags or nil, timeout = M.LONG_S }, more)
  end
  local function limit(id, concurrency, more)
    return jq:constrain(with({ id = id, concurrency = concurrency }, more), { tags = id })
  end
  local function tagged(tags, argument, more)
    return jq:enqueue(spec_of(tags, more), argument)
  end
  local function tagged_each(tags, count, more)
    local ids = {}
    for first = 1, count, 500 do
      local arguments = {}
      for i = first, math.min(count, first + 499) do
        arguments[#arguments + 1] = { v = i }
      end
      for _, id in ipairs(jq:enqueue_each(spec_of(tags, more), unpack(arguments))) do
        ids[#ids + 1] = id
      end
    end
    return ids
  end
  return limit, tagged, tagged_each
end

return M
