-- Audit of what leads to jobs: indexes of tags and of failures, unique keys, dependencies.
local keys = require "jqlua.base.keys"
local failure_groups = require "jqlua.links.failure_groups"
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

local function tags_of(job)
  return job[jobs.OPTIONS] ~= "" and jobs.copy_options(job).tags or {}
end

local function group_of(job)
  return failure_groups.group_of(call("GET", keys.EXTRA .. job[jobs.ID]))
end

--- Checks the index entries of a job.
---@param job table
function M.check_entries(job, problems)
  local id = job[jobs.ID]
  local tags = tags_of(job)
  for _, tag in ipairs(tags) do
    if not call("ZSCORE", keys.TAGGED .. tag, id) then
      report(problems, "job", id, "is missing among those with tag", tag)
    end
  end
  local queue = queues.load(job[jobs.QUEUE])
  if job[jobs.STATE] == states.ERROR then
    local group = group_of(job)
    local ended_ms = call("ZSCORE", queues.key(queue, states.ERROR), id)
    if call("ZSCORE", keys.FAILED .. group, id) ~= ended_ms then
      report(problems, "job", id, "is missing among the failures of group", group)
    end
  end
  if (tags[1] or jobs.copy_options(job).unique_for or job[jobs.STATE] == states.ERROR)
    and not queues.has(queue, queues.INDEXED) then
    report(problems, "queue", job[jobs.QUEUE], "has jobs in indexes and does not know it")
  end
end

---@param tag string
function M.check_tag(tag, problems)
  local key = keys.TAGGED .. tag
  for _, id in ipairs(call("ZRANGE", key, 0, MOST_MEMBERS - 1)) do
    local job = jobs.read(id)
    local has = false
    for _, its_tag in ipairs(job and tags_of(job) or {}) do
      has = has or its_tag == tag
    end
    if not has then
      report(problems, "tag", tag, "holds", id, job and "which does not have it" or "which has no record")
    end
  end
  local count = tonumber(call("ZSCORE", keys.TAGS, tag) or 0)
  if count ~= call("ZCARD", key) then
    report(problems, "tag", tag, "is counted as", count, "and has", call("ZCARD", key))
  end
  if not call("ZSCORE", keys.TAG_NAMES, tag) then
    report(problems, "tag", tag, "is missing among the names")
  end
end

---@param group string
function M.check_group(group, problems)
  for _, id in ipairs(call("ZRANGE", keys.FAILED .. group, 0, MOST_MEMBERS - 1)) do
    local job = jobs.read(id)
    if not job then
      report(problems, "group", group, "holds", id, "which has no record")
    elseif job[jobs.STATE] ~= states.ERROR or group_of(job) ~= group then
      report(problems, "group", group, "holds", id, "of state", job[jobs.STATE], "and group", group_of(job))
    end
  end
  if not call("ZSCORE", keys.FAILED_GROUPS, group) then
    report(problems, "group", group, "is missing among the groups")
  end
end

--- Checks a list of names: each must have its set.
---@param list string key
---@param prefix string of the sets' keys
function M.check_names(list, prefix, problems)
  for _, name in ipairs(call("ZRANGE", list, 0, MOST_MEMBERS - 1)) do
    if call("EXISTS", prefix .. name) == 0 then
      report(problems, "name", name, "is listed and has no jobs")
    end
  end
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
