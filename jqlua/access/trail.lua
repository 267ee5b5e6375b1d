-- The audit trail: what operators changed. The call that changes something writes the entry. A sorted set whose members
-- are a serial number and the entry as it is shown. The actor of a call that names none is "".
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"

local M = {}

local call = redis.call

M.DIGITS = 14 -- of the number in front of an entry
local MOST_BYTES = 1000 -- of a change
-- Fields of specs that say nothing of the change, or must not be seen.
local HIDDEN = {
  actor = true, cursor = true, count = true, ids = true, digest = true, declared = true, secrets = true,
  settings = true, known = true,
}

---@return boolean # whether the values are the same, also in tables
local function is_same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b
  end
  for name, value in pairs(a) do
    if not is_same(value, b[name]) then
      return false
    end
  end
  for name in pairs(b) do
    if a[name] == nil then
      return false
    end
  end
  return true
end

--- Larger integers are rounded in Lua: values with one are omitted rather than shown wrongly.
local MOST_EXACT = 2 ^ 53

---@return boolean # whether a number may have been rounded, also in tables
local function is_rounded(value)
  if type(value) == "table" then
    for _, item in pairs(value) do
      if is_rounded(item) then
        return true
      end
    end
  end
  return type(value) == "number" and (value >= MOST_EXACT or value <= -MOST_EXACT)
end

---@return table? change the fields of a spec other than its subject
local function change_of(spec, on)
  local change = {}
  for field, value in pairs(spec) do
    if not HIDDEN[field] and value ~= on and not is_rounded(value) then
      change[field] = value
    end
  end
  return next(change) and #cmsgpack.pack(change) <= MOST_BYTES and change or nil
end

--- Drops the oldest beyond a number.
---@param most number
function M.trim(most)
  local over = call("ZCARD", keys.TRAIL) - most
  if over > 0 then
    call("ZPOPMIN", keys.TRAIL, string.format("%.0f", over))
  end
end

--- Records a change.
---@param what string the operation
---@param on string its subject; empty: none
---@param spec table the call's
---@param count? number how many jobs were changed
function M.note(what, on, spec, count)
  local most = settings.at(settings.TRAIL_MAX)
  if most == 0 then
    return
  end
  local entry = {
    time_ms = meta.state[meta.NOW_MS], actor = spec.actor or "", what = what, on = on ~= "" and on or nil,
    change = change_of(spec, on), count = count,
  }
  local last = call("ZRANGE", keys.TRAIL, 0, 0, "REV")[1]
  local number = last and tonumber(last:sub(1, M.DIGITS), 16) or 0
  if last and (spec.cursor or "") ~= "" then
    -- A further step of the same change: recorded once, with the sum.
    local before = cmsgpack.unpack(last:sub(M.DIGITS + 1))
    if before.actor == entry.actor and before.what == what and is_same(before.change, entry.change) then
      call("ZREM", keys.TRAIL, last)
      entry.count, number = before.count + count, number - 1
    end
  end
  if entry.count == 0 and not spec.where then
    return
  end
  call("ZADD", keys.TRAIL, 0, string.format("%014x", number + 1) .. cmsgpack.pack(entry))
  if what ~= "config" then -- which may change the limit, and trims itself
    M.trim(most)
  end
end

--- Records a change of jobs that a call selects.
---@param count number how many were changed
function M.note_jobs(what, spec, count)
  local on = spec.ids and spec.ids[1] or spec.where and spec.where.queue or ""
  M.note(what, on, spec, count)
end

return M
