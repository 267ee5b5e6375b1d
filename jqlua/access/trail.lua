-- The audit trail: what operators changed. The call that changes something writes the entry. A sorted set whose members
-- are a serial number and the entry as it is shown. The actor of a call that names none is "".
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"

local M = {}

local call = redis.call

M.DIGITS = 14 -- of the number in front of an entry
local MOST_BYTES = 1000 -- of a change
local MOST_DROPPED = 1000 -- entries
-- Fields of specs that say nothing of the change, or must not be seen.
local HIDDEN = {
  actor = true, cursor = true, count = true, ids = true, digest = true, declared = true, secrets = true,
  settings = true, known = true,
}

---@return table? change the fields of a spec other than its subject
local function change_of(spec, on)
  local change = {}
  for field, value in pairs(spec) do
    if not HIDDEN[field] and value ~= on then
      change[field] = value
    end
  end
  return next(change) and #cmsgpack.pack(change) <= MOST_BYTES and change or nil
end

--- Drops the oldest beyond a number, some at a time, or all.
---@param most number
function M.trim(most)
  local over = call("ZCARD", keys.TRAIL) - most
  if most == 0 then
    call("UNLINK", keys.TRAIL)
  elseif over > 0 then
    call("ZPOPMIN", keys.TRAIL, math.min(over, MOST_DROPPED))
  end
end

--- Records a change.
---@param what string the operation
---@param on string its subject; empty: none
---@param spec table the call's
---@param count? number how many jobs were changed
---@param begun_ms? number when the first step of the change was; nil: it has one
function M.note(what, on, spec, count, begun_ms)
  local most = settings.at(settings.TRAIL_MAX)
  if most == 0 then
    return
  end
  local entry = {
    time_ms = begun_ms or meta.state[meta.NOW_MS], actor = spec.actor or "", what = what, on = on ~= "" and on or nil,
    change = change_of(spec, on), count = count,
  }
  local last = call("ZRANGE", keys.TRAIL, 0, 0, "REV")[1]
  local number = last and tonumber(last:sub(1, M.DIGITS), 16) or 0
  if last and (spec.cursor or "") ~= "" then
    -- A further step of the same change: recorded once, with the sum.
    local before = cmsgpack.unpack(last:sub(M.DIGITS + 1))
    if before.actor == entry.actor and before.what == what and before.time_ms == begun_ms then
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
---@param selection table as module find.find gives it
---@param count number how many were changed
function M.note_jobs(what, spec, selection, count)
  local on = spec.ids and spec.ids[1] or spec.where and spec.where.queue or ""
  M.note(what, on, spec, count, selection.begun_ms)
end

return M
