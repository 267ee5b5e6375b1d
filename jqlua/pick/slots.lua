---@lazy
-- Slots of a registered worker that jobs of other partitions have. Its partition counts them among what it holds, so
-- that it never gets more jobs at once than it may, and where no sign of such a job comes any more the slot is free
-- when that job's lease is over.
local apikey = require "jqlua.access.apikey"
local budget = require "jqlua.job.budget"
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"
local worker = require "jqlua.pick.worker"

local M = {}

local call = redis.call

local function member(id, job_id)
  return id .. " " .. job_id
end

local function attempt_of(token)
  return tonumber(token:match("^%d+"))
end

--- It stands in its pool exactly while it has room.
local function has_room(id)
  local record = worker.load(id)
  return record and record.u and call("ZSCORE", keys.POOL .. record.p, id) and (not record.a or apikey.lasts(record.a))
end

--- Keeps a slot for an attempt, a new one only where there is room.
---@param ms number until the end of its lease
---@return boolean
function M.keep(id, job_id, token, ms)
  local slot = member(id, job_id)
  local before = call("HGET", keys.SLOT_TOKENS, slot)
  local is_known = before and call("ZSCORE", keys.HELD .. id, job_id)
  if is_known and attempt_of(before) > attempt_of(token) or not is_known and not has_room(id) then
    return false
  end
  -- Its partition hands the job on as late.
  local until_ms = meta.state[meta.NOW_MS] + ms + settings.at(settings.LEASE_GRACE) * 1000
  call("ZADD", keys.SLOTS, until_ms, slot)
  call("HSET", keys.SLOT_TOKENS, slot, token)
  due.note(due.SLOTS, until_ms)
  if not is_known then
    call("ZADD", keys.HELD .. id, meta.state[meta.NOW_MS], job_id)
    worker.took(id)
  end
  return true
end

local function drop(slot, id, job_id)
  call("ZREM", keys.SLOTS, slot)
  call("HDEL", keys.SLOT_TOKENS, slot)
  worker.free(id, job_id)
end

--- Gives an attempt's slot back.
---@return boolean whether there was one
function M.free(id, job_id, token)
  local slot = member(id, job_id)
  if call("HGET", keys.SLOT_TOKENS, slot) ~= token then
    return false
  end
  drop(slot, id, job_id)
  return true
end

--- The attempts that have slots of a worker.
---@return string[] job, token, job, token, ...
function M.of(id)
  local found = {}
  for _, job_id in ipairs(call("ZRANGE", keys.HELD .. id, 0, -1)) do
    local token = call("HGET", keys.SLOT_TOKENS, member(id, job_id))
    if token then
      found[#found + 1], found[#found + 2] = job_id, token
    end
  end
  return found
end

--- Those whose time is over.
---@return number freed
function M.sweep(limit)
  local over = call("ZRANGEBYSCORE", keys.SLOTS, "-inf", meta.state[meta.NOW_MS], "LIMIT", 0, limit)
  for i, slot in ipairs(over) do
    drop(slot, slot:match("^(%S+) (%S+)$"))
    if not budget.pay(budget.RECORD) then
      return i
    end
  end
  return #over
end

return M
