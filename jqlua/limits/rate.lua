-- Rates: of each key the moments of its latest starts are stored, so that as many as the limit lie in any period.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

local MOMENT = ">d"
local SIZE = 8

--- The moment of a start: that of the last if the clock went back.
local function moment(key)
  return math.max(meta.state[meta.NOW_MS], key.last_ms)
end

--- When a stored start leaves the window.
---@param at number which of them, from 0 on, or from the end if it is negative
---@return number leaves_ms 0 if there are not so many, or it has left
local function leaves_ms(limit, key, at)
  local start = call("GETRANGE", keys.STARTS .. key.name, at * SIZE, at * SIZE + SIZE - 1)
  local at_ms = #start == SIZE and struct.unpack(MOMENT, start) + limit.period_ms or 0
  return at_ms > moment(key) and at_ms or 0
end

--- Whether a key has room for a start. If it has none, it is closed until it has.
---@return boolean
function M.has_room(limit, key)
  local opens_ms = leaves_ms(limit, key, -limit.rate)
  if opens_ms > 0 then
    key.opens_ms, key.is_changed = opens_ms, true
  end
  return opens_ms == 0
end

--- Until when a key is recorded as closed for lack of room.
---@return number closed_ms 0 if open
function M.closed_until(key)
  local opens_ms = key.opens_ms
  return opens_ms > key.last_ms and opens_ms or 0
end

--- Counts the start of a job under a key that had room: what lies before as many as the limit has left the window, and
--- goes now and then.
function M.note_start(limit, key)
  key.last_ms, key.is_changed = moment(key), true
  local starts = keys.STARTS .. key.name
  if call("APPEND", starts, struct.pack(MOMENT, key.last_ms)) >= 2 * SIZE * limit.rate then
    call("SET", starts, call("GETRANGE", starts, -SIZE * limit.rate, -1))
  end
end

--- Until when the starts of a key count.
---@return number
function M.remembers_until(limit, key)
  local last_ms = key.last_ms
  return limit.rate > 0 and last_ms > 0 and last_ms + limit.period_ms or 0
end

--- When a start would have room, without changes.
---@return number opens_ms 0 if it has room now
function M.outlook(limit, key)
  return math.max(M.closed_until(key), limit.rate > 0 and leaves_ms(limit, key, -limit.rate) or 0)
end

--- How many starts lie in the window that ends now.
function M.starts_in(limit, key)
  local low, high = 0, call("STRLEN", keys.STARTS .. key.name) / SIZE
  local count = high
  while low < high do
    local middle = math.floor((low + high) / 2)
    if leaves_ms(limit, key, middle) > 0 then
      high = middle
    else
      low = middle + 1
    end
  end
  return count - low
end

return M
