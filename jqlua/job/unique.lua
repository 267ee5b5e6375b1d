---@lazy
-- Unique keys. A key is a job's from its creation to its end, and with unique_for for some time after, at most as long
-- as its record is kept; or, with unique_within, for a time from its creation, whatever becomes of it. A job that is
-- to follow one that runs (if_exists latest) has the key before that one, which gets it back if it ends later: so a key
-- has the ids of all its jobs that have not ended, the latest first.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local due = require "jqlua.base.due"
local jobs = require "jqlua.job.jobs"

local M = {}

local call = redis.call

--- Whose key it is.
---@param key string
---@return string? id nil when it is free
function M.holder(key)
  local ids = call("GET", keys.UNIQUE .. key)
  if not ids then
    return nil
  end
  local until_ms = tonumber(call("ZSCORE", keys.UNIQUE_KEPT, key) or nil)
  if until_ms then
    return until_ms > meta.state[meta.NOW_MS] and ids or nil
  end
  for id in string.gmatch(ids, "%x+") do
    if jobs.read(id) then -- a record that somebody deleted by hand must not hold its key for ever
      return id
    end
  end
end

--- The key is kept for so long from now.
local function keep(key, seconds)
  local until_ms = meta.state[meta.NOW_MS] + math.ceil(seconds * 1000)
  call("ZADD", keys.UNIQUE_KEPT, until_ms, key)
  due.note(due.UNIQUE, until_ms)
end

--- Nobody has the key any more.
local function drop(key)
  call("DEL", keys.UNIQUE .. key)
  call("ZREM", keys.UNIQUE_KEPT, key)
end

--- The key is this job's from now on.
---@param options table the job's
---@param is_next? boolean whether those that have it get it back after this one
function M.take(options, id, is_next)
  local key = options.unique
  local behind = is_next and " " .. call("GET", keys.UNIQUE .. key) or ""
  call("SET", keys.UNIQUE .. key, id .. behind)
  if options.unique_within then
    keep(key, options.unique_within)
  else
    call("ZREM", keys.UNIQUE_KEPT, key)
  end
end

--- A job that ended is to run again: it takes its key, if it has one.
---@param job table job
---@return boolean taken false when it is another's by now
function M.claim(job)
  local options = jobs.options(job)
  if not options.unique or options.unique_within then -- whose time counts from when it was enqueued
    return true
  end
  local holder = M.holder(options.unique)
  if holder and holder ~= job[jobs.ID] then
    return false
  end
  M.take(options, job[jobs.ID])
  return true
end

--- A job ended: its key is another's that has not, free, or kept for a time.
---@param options table the job's
function M.leave(options, id)
  if options.unique_within then
    return
  end
  local key = options.unique
  local ids = call("GET", keys.UNIQUE .. key) or ""
  local others = string.gsub(" " .. ids, " " .. id, ""):sub(2)
  if others == ids then
    return
  elseif others ~= "" then
    call("SET", keys.UNIQUE .. key, others)
    return
  elseif not options.unique_for then
    call("DEL", keys.UNIQUE .. key)
    return
  end
  keep(key, options.unique_for)
end

--- The record of a job that ended goes: a key that is kept for it is free.
---@param job table job
---@param is_discarded? boolean by hand, which ends the time of unique_within as well
function M.forget(job, is_discarded)
  local options = jobs.options(job)
  local is_kept = options.unique_for or is_discarded and options.unique_within
  if is_kept and call("GET", keys.UNIQUE .. options.unique) == job[jobs.ID] then
    drop(options.unique)
  end
end

---@cold
--- Takes a key from its jobs, which go on without one.
---@return string? id whose it was; nil when it was free
function M.free(key)
  local holder = M.holder(key)
  if holder then
    for id in string.gmatch(call("GET", keys.UNIQUE .. key), "%x+") do
      local job = jobs.read(id)
      if job then
        local options = jobs.options(job)
        options.unique, options.unique_for, options.unique_within = nil, nil, nil
        job[jobs.OPTIONS] = next(options) and cmsgpack.pack(options) or ""
        jobs.save(job)
      end
    end
    drop(key)
  end
  return holder
end

--- Frees keys whose time is over.
---@return number count
function M.sweep(limit)
  local over = call("ZRANGEBYSCORE", keys.UNIQUE_KEPT, "-inf", meta.state[meta.NOW_MS], "LIMIT", 0, limit)
  local count = 0
  for _, key in ipairs(over) do
    drop(key)
    count = count + 1
    if not budget.pay(budget.LOOK) then
      break
    end
  end
  local first = call("ZRANGE", keys.UNIQUE_KEPT, 0, 0, "WITHSCORES")
  due.set(due.UNIQUE, tonumber(first[2]) or meta.NONE)
  return count
end

return M
