---@lazy
-- Limits: the part of a constraint that every start needs, and how many jobs have a unit of it.
--
-- In a script limits are a list of the fields below.
local batch = require "jqlua.base.writes"
local keys = require "jqlua.base.keys"
local opened = require "jqlua.limits.opened"
local share = require "jqlua.limits.share"

local M = {}

local call = redis.call

M.CONCURRENCY = 1 -- 0: none; share.CLOSED: nothing starts
M.RATE = 2 -- starts in a period; 0: none
M.PERIOD_MS = 3
M.SMOOTH = 4 -- 0 or 1
M.RUNNING = 5 -- jobs that have a unit
M.NUMBER = 6
local RECORD = 7 -- its Redis key
local CHANGED = 8
M.SHARE = 9 -- of a constraint that partitions share, whose limits above are those in force; else false
local FORMAT = ">dddBd"

--- As load, of a record that was read with others.
---@param record string its Redis key
---@param raw string|false
function M.decode(number, record, raw)
  local limit = false
  if raw then
    local concurrency, rate, period_ms, smooth, running, behind = struct.unpack(FORMAT, raw)
    limit = { concurrency, rate, period_ms, smooth, running, number, record, false, false }
    if behind <= #raw then
      M.put_share(limit, share.decode(raw, behind, concurrency, rate))
    end
  end
  opened.limits[number] = limit
  return limit or nil
end

---@return table? limit nil when there is no such constraint any more
function M.load(number)
  local limit = opened.limits[number]
  if limit ~= nil then
    return limit or nil
  end
  local record = keys.LIMIT .. string.format("%d", number)
  return M.decode(number, record, call("GET", record))
end

---@cold
--- A share is in force from now on, in place of what it is a share of.
function M.put_share(limit, its)
  limit[M.SHARE] = its
  limit[M.CONCURRENCY], limit[M.RATE] = share.in_force(its)
end

--- Puts limits in force.
---@param is_shared? boolean whether partitions share them: then nothing starts before there is a share
function M.set(number, concurrency, rate, period_ms, is_smooth, running, is_shared)
  local limit = {
    concurrency, rate, period_ms, is_smooth and 1 or 0, running, number,
    keys.LIMIT .. string.format("%d", number), true, false,
  }
  opened.limits[number] = limit
  if is_shared then
    M.put_share(limit, { 0, 0, concurrency, rate })
  end
end

---@cold
--- Another share.
function M.share_out(limit, concurrency, rate)
  local its = limit[M.SHARE]
  limit[CHANGED] = limit[CHANGED] or its[share.CONCURRENCY] ~= concurrency or its[share.RATE] ~= rate
  its[share.CONCURRENCY], its[share.RATE] = concurrency, rate
  M.put_share(limit, its)
end

---@cold
--- The record of a limit that is shared.
local function encode_shared(limit)
  local its = limit[M.SHARE]
  return struct.pack(FORMAT, its[share.OF_CONCURRENCY], its[share.OF_RATE], limit[M.PERIOD_MS], limit[M.SMOOTH],
    limit[M.RUNNING]) .. share.encode(its)
end

--- The constraint is gone.
function M.delete(number)
  opened.limits[number] = false
  call("UNLINK", keys.LIMIT .. string.format("%d", number))
end

--- Counts jobs that have taken a unit, or given it back.
---@param more number
function M.count(limit, more)
  limit[M.RUNNING] = limit[M.RUNNING] + more
  limit[CHANGED] = true
end

--- Has those that changed written at the next flush.
function M.save_all()
  local writes = batch.writes
  for _, limit in next, opened.limits do
    if limit and limit[CHANGED] then
      limit[CHANGED] = false
      local n = #writes
      writes[n + 1], writes[n + 2] = limit[RECORD], limit[M.SHARE] and encode_shared(limit)
        or struct.pack(FORMAT, limit[M.CONCURRENCY], limit[M.RATE], limit[M.PERIOD_MS], limit[M.SMOOTH],
          limit[M.RUNNING])
    end
  end
end

return M
