-- Audit of what leads to jobs: indexes of tags and of failures, unique keys, dependencies.
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local findings = require "jqlua.upkeep.findings"
local failure_groups = require "jqlua.links.failure_groups"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local queues = require "jqlua.queue.queues"
local readers = require "jqlua.links.readers"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call
local expect = findings.expect

local function tags_of(job)
  return job[jobs.OPTIONS] ~= "" and jobs.copy_options(job).tags or {}
end

local function group_of(job)
  return failure_groups.group_of(call("GET", keys.EXTRA .. job[jobs.ID]))
end

--- Checks the index entries of a job.
---@param job table
function M.check_entries(job)
  local id, queue, tags = job[jobs.ID], queues.load(job[jobs.QUEUE]), tags_of(job)
  for _, tag in ipairs(tags) do
    expect(call("ZSCORE", keys.TAGGED .. tag, id), "job", id, "is missing among those with tag", tag)
  end
  if job[jobs.STATE] == states.ERROR then
    local group = group_of(job)
    expect(tonumber(call("ZSCORE", keys.FAILED .. group, id) or nil) == members.score(job),
      "job", id, "is missing among the failures of group", group)
  end
  local is_indexed = tags[1] or jobs.copy_options(job).unique_for or job[jobs.STATE] == states.ERROR
  expect(not is_indexed or queues.has(queue, queues.INDEXED),
    "queue", job[jobs.QUEUE], "has jobs in indexes and does not know it")
end

---@param tag string
function M.check_tag(tag)
  local key = keys.TAGGED .. tag
  for _, id in ipairs(findings.members(key)) do
    local job = jobs.read(id)
    local has = false
    for _, its_tag in ipairs(job and tags_of(job) or {}) do
      has = has or its_tag == tag
    end
    expect(has, "tag", tag, "holds", id, job and "which does not have it" or "which has no record")
  end
  local count, size = tonumber(call("ZSCORE", keys.TAGS, tag) or 0), call("ZCARD", key)
  expect(count == size, "tag", tag, "is counted as", count, "and has", size)
  expect(call("ZSCORE", keys.TAG_NAMES, tag), "tag", tag, "is missing among the names")
end

---@param group string
function M.check_group(group)
  for _, id in ipairs(findings.members(keys.FAILED .. group)) do
    local job = jobs.read(id)
    if not job then
      expect(false, "group", group, "holds", id, "which has no record")
    else
      expect(job[jobs.STATE] == states.ERROR and group_of(job) == group,
        "group", group, "holds", id, "of state", job[jobs.STATE], "and group", group_of(job))
    end
  end
  expect(call("ZSCORE", keys.FAILED_GROUPS, group), "group", group, "is missing among the groups")
end

--- Checks a list of names: each must have its set.
---@param list string key
---@param prefix string of the sets' keys
function M.check_names(list, prefix)
  for _, name in ipairs(findings.members(list)) do
    expect(call("EXISTS", prefix .. name) == 1, "name", name, "is listed and has no jobs")
  end
end

--- Checks the links of a job.
---@param job table
function M.check_job(job)
  local id, state, options = job[jobs.ID], job[jobs.STATE], jobs.copy_options(job)
  local holds_key = options.unique and not options.unique_within and not states.is_of(state, states.ENDED)
  expect(not holds_key or (call("GET", keys.UNIQUE .. options.unique) or ""):find(id, 1, true),
    "job", id, "has lost its unique key")
  local waits = call("EXISTS", keys.WAITS_FOR .. id) == 1
  expect(waits == (state == states.BLOCKED),
    "job", id, "of state", state, waits and "waits for others" or "waits for nobody")
  local is_held = state == states.KEPT and members.score(job) == readers.HELD
  expect(not is_held or readers.any(job), "job", id, "has a result that is held for nobody")
end

--- Checks a job's set of those it waits for.
function M.check_waiting(id)
  expect(jobs.read(id), "job", id, "waits for others and has no record")
  for _, other_id in ipairs(findings.members(keys.WAITS_FOR .. id)) do
    expect(call("ZSCORE", keys.DEPENDENTS .. other_id, id), "job", id, "waits for", other_id, "which does not know")
  end
end

local function expect_awaited(id, what)
  local job = jobs.read(id)
  expect(not job or jobs.has(job, jobs.AWAITED), "job", id, what, "and does not know")
end

--- Checks the set of those that wait for a job.
function M.check_dependents(id)
  for _, dependent in ipairs(findings.members(keys.DEPENDENTS .. id)) do
    expect(call("ZSCORE", keys.WAITS_FOR .. dependent, id), "job", id, "is waited for by", dependent,
      "which does not know")
  end
  expect_awaited(id, "is waited for")
end

--- Checks the set of those that depend on a job and have not ended.
function M.check_readers(id)
  for _, dependent in ipairs(findings.members(keys.READERS .. id)) do
    local job = jobs.read(dependent)
    local depends = job and not states.is_of(job[jobs.STATE], states.ENDED) and jobs.copy_options(job).depends or {}
    expect((" " .. table.concat(depends, " ")):find(" " .. id, 1, true), "job", id, "has its result held for",
      dependent, "which does not need it")
  end
  expect_awaited(id, "has its result held")
end

--- Checks that a unique key is held by existing jobs, or kept: for an ended job, also without a record, or for a time
--- from when its job was enqueued.
function M.check_unique(key)
  local is_kept = call("ZSCORE", keys.UNIQUE_KEPT, key) ~= false
  for id in call("GET", keys.UNIQUE .. key):gmatch("[^ ]+") do
    local job = jobs.read(id)
    local options = job and jobs.copy_options(job) or {}
    local has_ended = not job or states.is_of(job[jobs.STATE], states.ENDED)
    expect(is_kept == has_ended or is_kept and options.unique_within, "unique key", key,
      is_kept and "is kept for" or "is of", id, "which has", has_ended and "ended" or "not ended")
    expect(not job or options.unique == key, "unique key", key, "is of", id, "which has another")
  end
end

--- Checks that kept keys have a job's id and a recorded time.
function M.check_kept()
  for _, key in ipairs(findings.members(keys.UNIQUE_KEPT)) do
    expect(call("EXISTS", keys.UNIQUE .. key) == 1, "unique key", key, "is kept, but is of no job")
  end
  findings.expect_bound("end of unique keys", tonumber(call("ZSCORE", keys.DUE, due.UNIQUE) or meta.NONE),
    findings.first_score(keys.UNIQUE_KEPT))
end

return M
