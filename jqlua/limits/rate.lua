-- Rates. An exact one counts the starts in the period that ends now, which are stored with date and cost. A smooth one
-- stores the time of the next start.
local keyrecord = require "jqlua.limits.keyrecord"
local keys = require "jqlua.base.keys"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

-- Rounding of costs that are fractions.
local EPSILON = 1e-9
local START = ">dd" -- date, cost
local PAGE = 100
local MOST_AHEAD = 1000

---@return boolean
function M.is_smooth(limit)
  return limit[limitrecord.SMOOTH] == 1
end

--- The cost that counts for a start.
---@param cost number
function M.cost(limit, cost)
  return math.min(cost, limit[limitrecord.RATE])
end

--- The date of a start: that of the last if the clock went back.
local function date(key)
  return math.max(meta.state[meta.NOW_MS], key[keyrecord.LAST_MS])
end

--- A lower bound of when a key has room for a start of that cost under an exact rate. Reads.
---@return number opens_ms 0 if it has room now
---@return number old how many of the stored starts have left the window
---@return number freed their cost
local function window_opens(limit, key, cost)
  local now = date(key)
  local enough = EPSILON * limit[limitrecord.RATE]
  local lacking = key[keyrecord.USED] + cost - limit[limitrecord.RATE]
  local old, freed = 0, 0
  if lacking <= enough then
    return 0, old, freed
  end
  local seen = 0
  while true do
    local starts = call("LRANGE", keys.STARTS .. key[keyrecord.NAME], seen, seen + PAGE - 1)
    local leaves_ms
    for _, start in ipairs(starts) do
      local at_ms, its_cost = struct.unpack(START, start)
      leaves_ms = at_ms + limit[limitrecord.PERIOD_MS]
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
      return 0, old, key[keyrecord.USED]
    elseif seen >= MOST_AHEAD and leaves_ms > now then
      return leaves_ms, old, freed -- check again then
    end
  end
end

--- When a key has room for an entry; drops old starts.
---@return number opens_ms
local function opens(limit, key, entry)
  if M.is_smooth(limit) then
    return math.ceil(key[keyrecord.USED])
  end
  local opens_ms, old, freed = window_opens(limit, key, M.cost(limit, entry[job_units.COST]))
  if freed > 0 then
    if old > 0 then
      call("LPOP", keys.STARTS .. key[keyrecord.NAME], old)
    end
    key[keyrecord.USED] = key[keyrecord.USED] - freed
    keyrecord.note_closed(key, key[keyrecord.OPENS_MS])
    key[keyrecord.OPENS_MS] = 0 -- it was set by starts that have left
    key[keyrecord.CHANGED] = true
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
  key[keyrecord.OPENS_MS] = opens_ms
  key[keyrecord.CHANGED] = true
  return false
end

--- Until when a key is recorded as closed for lack of room.
---@return number closed_ms 0 if open
function M.closed_until(key)
  local opens_ms = key[keyrecord.OPENS_MS]
  return opens_ms > key[keyrecord.LAST_MS] and opens_ms or 0
end

--- Counts the start of a job.
function M.note_start(limit, key, entry)
  local cost, at_ms = M.cost(limit, entry[job_units.COST]), date(key)
  if M.is_smooth(limit) then
    local from_ms = math.max(at_ms, key[keyrecord.USED])
    key[keyrecord.USED] = from_ms + cost * limit[limitrecord.PERIOD_MS] / limit[limitrecord.RATE]
  elseif cost > 0 then
    key[keyrecord.USED] = key[keyrecord.USED] + cost
    call("RPUSH", keys.STARTS .. key[keyrecord.NAME], struct.pack(START, at_ms, cost))
  end
  key[keyrecord.LAST_MS] = at_ms
  key[keyrecord.CHANGED] = true
end

--- Until when the starts of a key count.
---@return number
function M.remembers_until(limit, key)
  local last_ms = key[keyrecord.LAST_MS]
  if limit[limitrecord.RATE] == 0 or last_ms == 0 then
    return 0
  end
  return M.is_smooth(limit) and math.ceil(key[keyrecord.USED]) or last_ms + limit[limitrecord.PERIOD_MS]
end

--- When a start of that cost would have room, without changes.
---@return number opens_ms 0 if it has room now
function M.outlook(limit, key, cost)
  local opens_ms = key[keyrecord.OPENS_MS]
  if M.is_smooth(limit) then
    opens_ms = math.max(opens_ms, math.ceil(key[keyrecord.USED]))
  elseif limit[limitrecord.RATE] > 0 then
    opens_ms = math.max(opens_ms, (window_opens(limit, key, cost)))
  end
  return opens_ms > key[keyrecord.LAST_MS] and opens_ms or 0
end

--- The cost of the starts in the window that ends now.
function M.starts_in(limit, key)
  local used, now = key[keyrecord.USED], date(key)
  local name, from = keys.STARTS .. key[keyrecord.NAME], 0
  while true do
    local starts = call("LRANGE", name, from, from + PAGE - 1)
    for _, start in ipairs(starts) do
      local at_ms, cost = struct.unpack(START, start)
      if at_ms + limit[limitrecord.PERIOD_MS] > now then
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
