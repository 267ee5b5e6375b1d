-- Unique keys. A job holds its key from its creation to its end, and with unique_for for some time after, at most as
-- long as its record is kept; or, with unique_within, for a time from its creation, whatever becomes of it. A job that
-- follows a running one (if_exists latest) takes the key over, and returns it if it ends first: so a key holds the ids
-- of all its jobs that have not ended, the latest first.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local due = require "jqlua.base.due"
local jobs = require "jqlua.job.jobs"

local M = {}

local call = redis.call

--- The job that holds a key.
---@param key string
---@return string? id nil if the key is free
function M.holder(key)
  local ids = call("GET", keys.UNIQUE .. key)
  if not ids then
    return nil
  end
  local until_ms = due.at(due.UNIQUE .. key)
  if until_ms then
    return until_ms > meta.state[meta.NOW_MS] and ids or nil
  end
  for id in string.gmatch(ids, "%x+") do
    if jobs.read(id) then -- a record deleted by hand must not hold its key forever
      return id
    end
  end
end

--- Keeps a key for a time from now.
local function keep(key, seconds)
  due.put(due.UNIQUE .. key, meta.state[meta.NOW_MS] + math.ceil(seconds * 1000))
end

--- Frees a key.
function M.drop(key)
  call("DEL", keys.UNIQUE .. key)
  due.set(due.UNIQUE .. key, meta.NONE)
end

--- Gives a key to a job.
---@param options table the job's
---@param running? string id of a present holder: all of them get it back after this job
function M.take(options, id, running)
  local key = options.unique
  local behind = running and " " .. call("GET", keys.UNIQUE .. key) or ""
  local before = call("SET", keys.UNIQUE .. key, id .. behind, "GET")
  if options.unique_within then
    keep(key, options.unique_within)
  elseif before then
    due.set(due.UNIQUE .. key, meta.NONE)
  end
end

--- Takes the key of an ended job that is to run again, if it has one.
---@return boolean taken false if another job holds it
function M.claim(job)
  local options = jobs.copy_options(job)
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

--- After a job's end: its key passes to another job that has not ended, is kept for a time, or is free.
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

--- When an ended job's record is removed: frees a key that is kept for it.
---@param is_discarded? boolean by hand, which ends the time of unique_within as well
function M.forget(job, is_discarded)
  local options = jobs.copy_options(job)
  local is_kept = options.unique_for or is_discarded and options.unique_within
  if is_kept and call("GET", keys.UNIQUE .. options.unique) == job[jobs.ID] then
    M.drop(options.unique)
  end
end

return M
