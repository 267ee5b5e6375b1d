---@lazy
-- The part of the audit that is about the indexes of tags and of failures, against the job records and back.
local keys = require "jqlua.base.keys"
local failure_groups = require "jqlua.job.failure_groups"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"

local M = {}

local call = redis.call

-- Of a larger set, the first are looked at.
local MOST_MEMBERS = 300

local function found(problems, ...)
  problems[#problems + 1] = table.concat({ ... }, " ")
end

local function tags_of(of)
  return of[jobs.OPTIONS] ~= "" and jobs.options(of).tags or {}
end

local function group_of(of)
  return failure_groups.group_of(call("GET", keys.EXTRA .. of[jobs.ID]))
end

--- What must be there for a job.
---@param of table
function M.check_job(of, problems)
  local id = of[jobs.ID]
  local tags = tags_of(of)
  for _, tag in ipairs(tags) do
    if not call("ZSCORE", keys.TAGGED .. tag, id) then
      found(problems, "job", id, "is missing among those with tag", tag)
    end
  end
  local owner = queues.load(of[jobs.QUEUE])
  if of[jobs.STATE] == states.ERROR then
    local group = group_of(of)
    local ended_ms = call("ZSCORE", queues.key(owner, states.ERROR), id)
    if call("ZSCORE", keys.FAILED .. group, id) ~= ended_ms then
      found(problems, "job", id, "is missing among the failures of group", group)
    end
  end
  if (tags[1] or jobs.options(of).unique_for or of[jobs.STATE] == states.ERROR)
    and not queues.has(owner, queues.INDEXED) then
    found(problems, "queue", of[jobs.QUEUE], "has jobs in indexes and does not know it")
  end
end

---@param tag string
function M.check_tag(tag, problems)
  local key = keys.TAGGED .. tag
  for _, id in ipairs(call("ZRANGE", key, 0, MOST_MEMBERS - 1)) do
    local of = jobs.read(id)
    local has = false
    for _, its_tag in ipairs(of and tags_of(of) or {}) do
      has = has or its_tag == tag
    end
    if not has then
      found(problems, "tag", tag, "holds", id, of and "which does not have it" or "which has no record")
    end
  end
  local count = tonumber(call("ZSCORE", keys.TAGS, tag) or 0)
  if count ~= call("ZCARD", key) then
    found(problems, "tag", tag, "is counted as", count, "and has", call("ZCARD", key))
  end
  if not call("ZSCORE", keys.TAG_NAMES, tag) then
    found(problems, "tag", tag, "is missing among the names")
  end
end

---@param group string
function M.check_group(group, problems)
  for _, id in ipairs(call("ZRANGE", keys.FAILED .. group, 0, MOST_MEMBERS - 1)) do
    local of = jobs.read(id)
    if not of then
      found(problems, "group", group, "holds", id, "which has no record")
    elseif of[jobs.STATE] ~= states.ERROR or group_of(of) ~= group then
      found(problems, "group", group, "holds", id, "of state", of[jobs.STATE], "and group", group_of(of))
    end
  end
  if not call("ZSCORE", keys.FAILED_GROUPS, group) then
    found(problems, "group", group, "is missing among the groups")
  end
end

--- A list of names: each must have its set.
---@param list string key
---@param prefix string of the sets' keys
function M.check_names(list, prefix, problems)
  for _, name in ipairs(call("ZRANGE", list, 0, MOST_MEMBERS - 1)) do
    if call("EXISTS", prefix .. name) == 0 then
      found(problems, "name", name, "is listed and has no jobs")
    end
  end
end

return M
