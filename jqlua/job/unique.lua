---@lazy
-- Unique keys. A key is a job's from its creation to its end, and with unique_for for some time after.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local due = require "jqlua.base.due"
local job = require "jqlua.job.record"

local M = {}

local call = redis.call

--- Whose key it is.
---@param key string
---@return string? id nil when it is free
function M.holder(key)
  local id = call("GET", keys.UNIQUE .. key)
  if not id then
    return nil
  end
  local until_ms = tonumber(call("ZSCORE", keys.UNIQUE_KEPT, key) or nil)
  if until_ms then
    return until_ms > meta.state[meta.NOW_MS] and id or nil
  end
  -- A record that somebody deleted by hand must not hold its key for ever.
  return job.read(id) and id or nil
end

--- The key is this job's from now on.
function M.take(key, id)
  call("SET", keys.UNIQUE .. key, id)
  call("ZREM", keys.UNIQUE_KEPT, key)
end

--- A job that ended is to run again: it takes its key, if it has one.
---@param of table job
---@return boolean taken false when it is another's by now
function M.claim(of)
  local key = job.options(of).unique
  if not key then
    return true
  end
  local holder = M.holder(key)
  if holder and holder ~= of[job.ID] then
    return false
  end
  M.take(key, of[job.ID])
  return true
end

--- A job ended: its key is free, or kept for a time.
---@param options table the job's
function M.leave(options, id)
  local key = options.unique
  if call("GET", keys.UNIQUE .. key) ~= id then
    return
  end
  if not options.unique_for then
    call("DEL", keys.UNIQUE .. key)
    return
  end
  local until_ms = meta.state[meta.NOW_MS] + math.ceil(options.unique_for * 1000)
  call("ZADD", keys.UNIQUE_KEPT, until_ms, key)
  due.note("U", until_ms)
end

--- Frees keys whose time is over.
---@return number count
function M.sweep(limit)
  local over = call("ZRANGEBYSCORE", keys.UNIQUE_KEPT, "-inf", meta.state[meta.NOW_MS], "LIMIT", 0, limit)
  for _, key in ipairs(over) do
    call("DEL", keys.UNIQUE .. key)
    call("ZREM", keys.UNIQUE_KEPT, key)
  end
  local first = call("ZRANGE", keys.UNIQUE_KEPT, 0, 0, "WITHSCORES")
  due.set("U", tonumber(first[2]) or meta.NONE)
  return #over
end

return M
