-- Rates. An exact one counts the starts in the period that ends now, which are stored with date and cost. A smooth one
-- stores the time of the next start.
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

--- A lower bound of when a key has room for a start of that cost under an exact rate. Reads.
---@return number opens_ms 0 if it has room now
---@return number old how many of the stored starts have left the window
---@return number freed their cost
local function window_opens(limit, key, cost)
  local now = date(key)
  local enough = EPSILON * limit.rate
  local lacking = key.used + cost - limit.rate
  local old, freed = 0, 0
  if lacking <= enough then
    return 0, old, freed
  end
  local seen = 0
  while true do
    local starts = call("LRANGE", keys.STARTS .. key.name, seen, seen + PAGE - 1)
    local leaves_ms
    for _, start in ipairs(starts) do
      local at_ms, its_cost = struct.unpack(START, start)
      leaves_ms = at_ms + limit.period_ms
      lacking = lacking - its_cost
      if leaves_ms <= now then
        old, freed = old + 1, freed + its_cost
      end
      if lacking <= enough then
        return leaves_ms > now and leaves_ms or 0, old, freed
      end
    end
    seen = seen + #starts
    if #starts < PAGE then
      return 0, old, key.used
    elseif seen >= MOST_AHEAD and leaves_ms > now then
      return leaves_ms, old, freed -- check again then
    end
  end
end

--- When a key has room for an entry; drops old starts.
---@return number opens_ms
local function opens(limit, key, entry)
  if limit.is_smooth then
    return math.ceil(key.used)
  end
  local opens_ms, old, freed = window_opens(limit, key, M.cost(limit, entry[job_units.COST]))
  if freed > 0 then
    if old > 0 then
      call("LPOP", keys.STARTS .. key.name, old)
    end
    key.used = key.used - freed
    key.opens_ms = 0 -- it was set by starts that have left
    key.is_changed = true
  end
  return opens_ms
end

--- Whether a key has room for an entry. If it has none, it is closed until it has.
---@return boolean
function M.has_room(limit, key, entry)
  local opens_ms = opens(limit, key, entry)
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
  if limit.is_smooth then
    local from_ms = math.max(at_ms, key.used)
    key.used = from_ms + cost * limit.period_ms / limit.rate
  elseif cost > 0 then
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
  if limit.rate == 0 or last_ms == 0 then
    return 0
  end
  return limit.is_smooth and math.ceil(key.used) or last_ms + limit.period_ms
end

--- When a start of that cost would have room, without changes.
---@return number opens_ms 0 if it has room now
function M.outlook(limit, key, cost)
  local opens_ms = key.opens_ms
  if limit.is_smooth then
    opens_ms = math.max(opens_ms, math.ceil(key.used))
  elseif limit.rate > 0 then
    opens_ms = math.max(opens_ms, (window_opens(limit, key, cost)))
  end
  return opens_ms > key.last_ms and opens_ms or 0
end

--- The cost of the starts in the window that ends now.
function M.starts_in(limit, key)
  local used, now = key.used, date(key)
  local name, from = keys.STARTS .. key.name, 0
  while true do
    local starts = call("LRANGE", name, from, from + PAGE - 1)
    for _, start in ipairs(starts) do
      local at_ms, cost = struct.unpack(START, start)
      if at_ms + limit.period_ms > now then
        return used
      end
      used = used - cost
    end
    if #starts < PAGE then
      return 0
    end
    from = from + PAGE
  end
end

return M
