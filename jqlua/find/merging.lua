-- The sets of all queues merged, for views of recent activity: first running jobs, then ended ones, the latest first,
-- then waiting ones in their order.
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local members = require "jqlua.queue.members"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- States whose sets are merged with one another.
M.ORDER = { "r", "kdecn", "t", "qw", "s", "b" }
local REVERSED = "rkdecn"
-- With more queues they are searched one after another: a page has to read the head of each.
local MOST_QUEUES = 200
-- A listing that began with fewer continues as it began.
local MOST_AT_ALL = 1000
local FEW = 10
-- Prices of finding the next job, and of reading on in a set.
local NEXT = 0.5
local REFILL = 0.6

--- The queues to be merged.
---@param only? string
---@return string[]? names nil if there are too many
function M.names(only, has_begun)
  if only then
    return { only }
  elseif not has_begun and call("ZCARD", keys.QUEUE_NAMES) > MOST_QUEUES then
    return nil
  end
  return call("ZRANGE", keys.QUEUE_NAMES, 0, MOST_AT_ALL - 1)
end

--- The next members of a sorted set by time, the latest first.
---@return table[]? members nil if more than FEW share the time
---@return boolean is_over
local function members_before(source, at)
  local base, top = states.band(source.state)
  local from = at and string.format("%.0f", base + at[1]) or string.format("(%.0f", top)
  local flat = call("ZRANGE", queues.key(source.queue, source.state), from, base, "BYSCORE", "REV", "LIMIT", 0, FEW,
    "WITHSCORES")
  local found = {}
  for i = 1, #flat, 2 do
    local score = tonumber(flat[i + 1]) - base
    if not at or score < at[1] or flat[i] < at[2] then
      found[#found + 1] = { score, flat[i] }
    end
  end
  return (found[1] or #flat < 2 * FEW) and found or nil, #flat < 2 * FEW
end

--- Reads members behind a position.
local function refill(source, at, is_reversed)
  budget.pay(REFILL)
  at = at and { at[1] + source.offset, at[2] }
  local found, is_over
  if is_reversed then
    found, is_over = members_before(source, at)
  end
  if not found then
    found = members.next(source.queue, source.state, at, FEW, is_reversed)
    is_over = #found < FEW
  end
  for _, member in ipairs(found) do
    member[1] = member[1] - source.offset
  end
  source.members, source.place, source.is_over = found, 1, is_over
end

local function comes_before(a, b, is_reversed)
  if is_reversed then
    a, b = b, a
  end
  return a[1] < b[1] or a[1] == b[1] and a[2] < b[2]
end

--- Inserts a source into a list in order of the next members, the best at the end.
local function insert(sources, source)
  local first, low, high = source.members[source.place], 1, #sources + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = sources[middle]
    if comes_before(first, other.members[other.place], sources.is_reversed) then
      low = middle + 1
    else
      high = middle
    end
  end
  table.insert(sources, low, source)
end

--- The sets of an entry of ORDER, each at the first member behind a position.
---@param letters string states that matter
---@param from? table {score, id}; nil: at the beginning
---@return table? sources {queue, state, offset: what a score has more than the moment that orders it, ...}; nil: none
--- is wanted
function M.open(entry, letters, names, from)
  local sources = { is_reversed = states.is_of(entry:sub(1, 1), REVERSED) }
  local is_wanted = false
  for letter in entry:gmatch(".") do
    for _, name in ipairs(letters:find(letter, 1, true) and names or {}) do
      local queue = queues.load(name)
      -- Its score is until when the result is kept. The end follows from it as long as the result was not read.
      local offset = letter == states.KEPT and math.floor(settings.at(settings.RESULT_TTL, queue) * 1000) or 0
      local source = { queue = queue, state = letter, offset = offset }
      is_wanted = true
      refill(source, from, sources.is_reversed)
      if source.members[1] then
        insert(sources, source)
      end
    end
  end
  return is_wanted and sources or nil
end

--- The next of all members.
---@return table[] members {score, id}
function M.next(sources, most)
  local found = {}
  while #found < most and sources[1] do
    budget.pay(NEXT)
    local source = table.remove(sources)
    local first = source.members[source.place]
    found[#found + 1] = first
    source.place = source.place + 1
    if not source.members[source.place] and not source.is_over then
      refill(source, { first[1], first[2] }, sources.is_reversed)
    end
    if source.members[source.place] then
      insert(sources, source)
    end
  end
  return found
end

return M
