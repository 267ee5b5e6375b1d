-- Rates: the starts in the period that ends now are stored with date and cost.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

-- Rounding of costs that are fractions.
local EPSILON = 1e-9
local START = ">dd" -- date, cost
local PAGE = 100
local MOST_AHEAD = 1000

--- The cost that counts for a start.
---@param cost number
function M.cost(limit, cost)
  return math.min(cost, limit.rate)
end

--- The date of a start: that of the last if the clock went back.
local function date(key)
  return math.max(meta.state[meta.NOW_MS], key.last_ms)
end

--- The stored starts of a key, oldest first.
---@return fun(): number?, number? date and cost of the next
local function each_start(key)
  local page, at, from = {}, PAGE, 0
  return function()
    at = at + 1
    if at > PAGE then
      page, at, from = call("LRANGE", keys.STARTS .. key.name, from, from + PAGE - 1), 1, from + PAGE
    end
    if page[at] then
      return struct.unpack(START, page[at])
    end
  end
end

--- A lower bound of when a key has room for a start of that cost. Reads.
---@return number opens_ms 0 if it has room now
---@return number old how many of the stored starts have left the window
---@return number freed their cost
local function window_opens(limit, key, cost)
  local now, enough = date(key), EPSILON * limit.rate
  local lacking = key.used + cost - limit.rate
  local seen, old, freed = 0, 0, 0
  if lacking <= enough then
    return 0, old, freed
  end
  for at_ms, its_cost in each_start(key) do
    local leaves_ms = at_ms + limit.period_ms
    seen, lacking = seen + 1, lacking - its_cost
    if leaves_ms <= now then
      old, freed = old + 1, freed + its_cost
      leaves_ms = 0
    end
    if lacking <= enough or seen >= MOST_AHEAD and leaves_ms > 0 then -- then it is checked again
      return leaves_ms, old, freed
    end
  end
  return 0, old, key.used
end

--- Whether a key has room for an entry; drops old starts. If it has none, it is closed until it has.
---@return boolean
function M.has_room(limit, key, entry)
  local opens_ms, old, freed = window_opens(limit, key, M.cost(limit, entry[job_units.COST]))
  if freed > 0 then
    if old > 0 then
      call("LPOP", keys.STARTS .. key.name, old)
    end
    key.used = key.used - freed
    key.opens_ms = 0 -- it was set by starts that have left
    key.is_changed = true
  end
  if opens_ms <= date(key) then
    return true
  end
  key.opens_ms = opens_ms
  key.is_changed = true
  return false
end

--- Until when a key is recorded as closed for lack of room.
---@return number closed_ms 0 if open
function M.closed_until(key)
  local opens_ms = key.opens_ms
  return opens_ms > key.last_ms and opens_ms or 0
end

--- Counts the start of a job.
function M.note_start(limit, key, entry)
  local cost, at_ms = M.cost(limit, entry[job_units.COST]), date(key)
  if cost > 0 then
    key.used = key.used + cost
    call("RPUSH", keys.STARTS .. key.name, struct.pack(START, at_ms, cost))
  end
  key.last_ms = at_ms
  key.is_changed = true
end

--- Until when the starts of a key count.
---@return number
function M.remembers_until(limit, key)
  local last_ms = key.last_ms
  return limit.rate > 0 and last_ms > 0 and last_ms + limit.period_ms or 0
end

--- When a start of that cost would have room, without changes.
---@return number opens_ms 0 if it has room now
function M.outlook(limit, key, cost)
  local opens_ms = key.opens_ms
  if limit.rate > 0 then
    opens_ms = math.max(opens_ms, (window_opens(limit, key, cost)))
  end
  return opens_ms > key.last_ms and opens_ms or 0
end

--- The cost of the starts in the window that ends now.
function M.starts_in(limit, key)
  local used, now = key.used, date(key)
  for at_ms, cost in each_start(key) do
    if at_ms + limit.period_ms > now then
      return used
    end
    used = used - cost
  end
  return 0
end

return M
