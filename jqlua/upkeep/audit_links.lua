-- Audit of unique keys and dependencies.
local keys = require "jqlua.base.keys"
local jobs = require "jqlua.job.jobs"
local queues = require "jqlua.queue.queues"
local readers = require "jqlua.links.readers"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- Of a larger set, the first are checked.
local MOST_MEMBERS = 300

local function report(problems, ...)
  problems[#problems + 1] = table.concat({ ... }, " ")
end

--- Checks the links of a job.
---@param job table
function M.check_job(job, problems)
  local id = job[jobs.ID]
  local options = jobs.copy_options(job)
  if options.unique and not options.unique_within and not states.is_of(job[jobs.STATE], states.ENDED)
    and not (call("GET", keys.UNIQUE .. options.unique) or ""):find(id, 1, true) then
    report(problems, "job", id, "has lost its unique key")
  end
  local waits = call("EXISTS", keys.WAITS_FOR .. id) == 1
  if waits ~= (job[jobs.STATE] == states.BLOCKED) then
    report(problems, "job", id, "of state", job[jobs.STATE], waits and "waits for others" or "waits for nobody")
  end
  local kept = job[jobs.STATE] == states.KEPT and queues.key(queues.load(job[jobs.QUEUE]), states.KEPT)
  if kept and tonumber(call("ZSCORE", kept, id) or nil) == readers.HELD and not readers.any(job) then
    report(problems, "job", id, "has a result that is held for nobody")
  end
end

--- Checks a job's set of those it waits for.
function M.check_waiting(id, problems)
  local job = jobs.read(id)
  if not job then
    report(problems, "job", id, "waits for others and has no record")
  end
  for _, other_id in ipairs(call("ZRANGE", keys.WAITS_FOR .. id, 0, MOST_MEMBERS - 1)) do
    if not call("ZSCORE", keys.DEPENDENTS .. other_id, id) then
      report(problems, "job", id, "waits for", other_id, "which does not know")
    end
  end
end

--- Checks the set of those that wait for a job.
function M.check_dependents(id, problems)
  for _, dependent in ipairs(call("ZRANGE", keys.DEPENDENTS .. id, 0, MOST_MEMBERS - 1)) do
    if not call("ZSCORE", keys.WAITS_FOR .. dependent, id) then
      report(problems, "job", id, "is waited for by", dependent, "which does not know")
    end
  end
  local other = jobs.read(id)
  if other and not jobs.has(other, jobs.AWAITED) then
    report(problems, "job", id, "is waited for and does not know")
  end
end

--- Checks the set of those that depend on a job and have not ended.
function M.check_readers(id, problems)
  for _, dependent in ipairs(call("ZRANGE", keys.READERS .. id, 0, MOST_MEMBERS - 1)) do
    local job = jobs.read(dependent)
    local depends = job and not states.is_of(job[jobs.STATE], states.ENDED) and jobs.copy_options(job).depends or {}
    if not (" " .. table.concat(depends, " ")):find(" " .. id, 1, true) then
      report(problems, "job", id, "has its result held for", dependent, "which does not need it")
    end
  end
  local other = jobs.read(id)
  if other and not jobs.has(other, jobs.AWAITED) then
    report(problems, "job", id, "has its result held and does not know")
  end
end

--- Checks that a unique key is held by existing jobs, or kept: for an ended job, also without a record, or for a time
--- from when its job was enqueued.
function M.check_unique(key, problems)
  local is_kept = call("ZSCORE", keys.UNIQUE_KEPT, key) ~= false
  for id in call("GET", keys.UNIQUE .. key):gmatch("[^ ]+") do
    local job = jobs.read(id)
    local has_ended = not job or states.is_of(job[jobs.STATE], states.ENDED)
    if is_kept ~= has_ended and not (is_kept and jobs.copy_options(job).unique_within) then
      report(problems, "unique key", key, is_kept and "is kept for" or "is of", id, "which has",
        has_ended and "ended" or "not ended")
    elseif job and jobs.copy_options(job).unique ~= key then
      report(problems, "unique key", key, "is of", id, "which has another")
    end
  end
end

--- Checks that kept keys have a job's id and a recorded time.
function M.check_kept(problems)
  for _, key in ipairs(call("ZRANGE", keys.UNIQUE_KEPT, 0, MOST_MEMBERS - 1)) do
    if call("EXISTS", keys.UNIQUE .. key) == 0 then
      report(problems, "unique key", key, "is kept, but is of no job")
    end
  end
  local first = tonumber(call("ZRANGE", keys.UNIQUE_KEPT, 0, 0, "WITHSCORES")[2])
  local noted = tonumber(call("ZSCORE", keys.DUE, "U") or nil)
  if first and (not noted or noted > first) then
    report(problems, "unique keys are kept until", first, "and that is not noted")
  end
end

return M
