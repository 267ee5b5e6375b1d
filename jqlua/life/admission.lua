-- Limits on new queues, names and tags in a namespace. Calls that would exceed one are refused.
-- Jobs of schedules, jobs that wait already and jobs enqueued by an outcome are accepted in any case, so that none is
-- lost.
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"
local buckets = require "jqlua.statistics.buckets"

local M = {}

local call = redis.call

local function refuse(path, what, number, things)
  check.refuse(string.format("FULL %s: %s, and %s (%.0f%s) is reached", path, what, settings.ALL[number][1],
    settings.at(number), things))
end

--- Refuses the call if there is no room for new queues.
---@param count number of new queues, the named one included
function M.check_queues(name, count, path)
  if call("ZCARD", keys.QUEUE_NAMES) + count > settings.at(settings.QUEUES) then
    refuse(path, check.show(name) .. " is new", settings.QUEUES, " queues")
  end
end

--- Collects what a call adds, and the counts before it.
---@return table call
function M.begin()
  return { tags = {}, tag_count = false, pairs = {}, pair_count = false }
end

---@param admitted table as begin gives it
function M.check_tags(admitted, tags, path)
  for i, tag in ipairs(tags) do
    if not admitted.tags[tag] and not call("ZSCORE", keys.TAGS, tag) then
      admitted.tag_count = (admitted.tag_count or call("ZCARD", keys.TAGS)) + 1
      admitted.tags[tag] = true
      if admitted.tag_count > settings.at(settings.TAGS) then
        refuse(path .. ".tags[" .. i - 1 .. "]", check.show(tag) .. " is new", settings.TAGS, " tags")
      end
    end
  end
end

--- Counts the pairs of queue and name in the statistics, including those still in the log.
local function count_pairs(admitted)
  admitted.pair_count = call("ZCARD", keys.STATS_PAIRS)
  for pair in pairs(buckets.cells(call("GET", keys.LOG))) do
    if buckets.is_pair(pair) and not call("ZSCORE", keys.STATS_PAIRS, pair) then
      admitted.pairs[pair] = true
      admitted.pair_count = admitted.pair_count + 1
    end
  end
end

--- Jobs with their queue's name are accepted whenever the queue is.
local function check_name(admitted, new, path)
  local queue_name, name = new[jobs.QUEUE], new[jobs.NAME]
  local pair = queue_name .. "\0" .. (name ~= queue_name and name or "")
  if not admitted.pair_count then
    count_pairs(admitted)
  end
  if not admitted.pairs[pair] and not call("ZSCORE", keys.STATS_PAIRS, pair) then
    admitted.pairs[pair] = true
    admitted.pair_count = admitted.pair_count + 1
    if name ~= queue_name and admitted.pair_count > settings.at(settings.NAMES) then
      refuse(path .. ".name", check.show(name) .. " is new in its queue", settings.NAMES, " pairs of queue and name")
    end
  end
end

--- Refuses the call if a new job exceeds a limit.
---@param admitted table as begin gives it
---@param new table as module job.jobspec parses it
function M.check_job(admitted, new, path)
  if meta.state[meta.COUNTED] then
    check_name(admitted, new, path)
  end
  if new[jobs.OPTIONS] ~= "" then
    M.check_tags(admitted, jobs.options(new).tags or {}, path)
  end
end

return M
