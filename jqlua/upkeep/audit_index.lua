-- Audit of the indexes of tags and of failures, against the job records and back.
local keys = require "jqlua.base.keys"
local failure_groups = require "jqlua.links.failure_groups"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"

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
function M.check_job(job, problems)
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

return M
