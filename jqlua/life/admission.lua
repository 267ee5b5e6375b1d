-- Limits on new queues, names, tags and keys of constraints in a namespace. Calls that would exceed one are refused.
-- Jobs of schedules, jobs that wait already and jobs enqueued by an outcome are accepted in any case, so that none is
-- lost.
local bounds = require "jqlua.settings.bounds"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local settings = require "jqlua.settings.settings"
local buckets = require "jqlua.statistics.buckets"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

local function refusal(path, what, number, things)
  return string.format("FULL %s: %s, and %s (%.0f%s) is reached", path, what, settings.ALL[number][1],
    settings.at(number), things)
end

--- Whether there is room for new queues.
---@param count number of new queues, the named one included
---@return string? problem
function M.check_queues(name, count, path)
  if call("ZCARD", keys.QUEUE_NAMES) + count > settings.at(settings.QUEUES) then
    return refusal(path, check.show(name) .. " is new", settings.QUEUES, " queues")
  end
end

--- Collects what a call adds, and the counts before it.
---@return table call
function M.begin()
  return { tags = {}, tag_count = false, pairs = {}, pair_count = false, full = nil }
end

---@param admitted table as begin gives it
---@return string? problem
function M.check_tags(admitted, tags, path)
  for i, tag in ipairs(tags) do
    if not admitted.tags[tag] and not call("ZSCORE", keys.TAGS, tag) then
      admitted.tag_count = (admitted.tag_count or call("ZCARD", keys.TAGS)) + 1
      admitted.tags[tag] = true
      if admitted.tag_count > settings.at(settings.TAGS) then
        return refusal(path .. ".tags[" .. i - 1 .. "]", check.show(tag) .. " is new", settings.TAGS, " tags")
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
local function name_problem(admitted, new, path)
  local queue_name, name = new[jobs.QUEUE], new[jobs.NAME]
  local pair = queue_name .. "\0" .. (name ~= queue_name and name or "")
  if not admitted.pair_count then
    count_pairs(admitted)
  end
  if not admitted.pairs[pair] and not call("ZSCORE", keys.STATS_PAIRS, pair) then
    admitted.pairs[pair] = true
    admitted.pair_count = admitted.pair_count + 1
    if name ~= queue_name and admitted.pair_count > settings.at(settings.NAMES) then
      return refusal(path .. ".name", check.show(name) .. " is new in its queue", settings.NAMES,
        " pairs of queue and name")
    end
  end
end

--- The constraints that accept no further key.
---@return table|false full numbers of constraints as texts, or `all`
local function find_full()
  local counts, total = bounds.keys_in_use()
  local full, most = { all = total >= settings.at(settings.ALL_KEYS) }, settings.at(settings.KEYS)
  local is_any = full.all
  for number, count in pairs(counts) do
    full[number] = count >= most
    is_any = is_any or full[number]
  end
  return is_any and full
end

---@param full table as find_full gives it
---@param digits? string number of the constraint
---@return string? problem
local function full_problem(full, digits, what, path)
  if digits and full[digits] then
    return refusal(path, what, settings.KEYS, " keys of one constraint")
  elseif full.all then
    return refusal(path, what, settings.ALL_KEYS, " keys of all constraints")
  end
end

local function unused(id)
  return "its key of constraint " .. check.show(id) .. " is not in use"
end

--- A constraint without `by` has one key, which is always accepted.
local function key_problem(admitted, new, argument, path)
  if meta.state[meta.VERSION] == 0 or constraints.fixed(new[jobs.QUEUE], new[jobs.NAME], false) then
    return
  end
  if admitted.full == nil then
    admitted.full = find_full()
  end
  for _, entry in ipairs(admitted.full and constraints.entries(new, constraints.facts(new, argument), false) or {}) do
    local digits = entry[job_units.DIGITS]
    if entry[job_units.VALUE] ~= "" and (admitted.full.all or admitted.full[digits])
      and call("EXISTS", keys.KEY .. entry[job_units.NAME]) == 0 then
      return full_problem(admitted.full, digits, unused(constraints.load_number(entry[job_units.NUMBER]).i), path)
    end
  end
end

--- Whether a constraint with `by` may be created, or a key of it be put on hold.
---@param definition table
---@param path string
---@param value? string of the key
---@return string? problem
function M.check_keys(definition, path, value)
  if not meta.state[meta.CROWDED]
    or value and call("EXISTS", keys.KEY .. job_units.key_name(definition.n, value)) == 1 then
    return
  end
  local full, id = find_full(), definition.i
  return full and full_problem(full, value and string.format("%d", definition.n),
    value and unused(id) or check.show(id) .. " would add keys", path) or nil
end

--- Whether a new job exceeds no limit.
---@param admitted table as begin gives it
---@param new table as module job.jobspec parses it
---@return string? problem
function M.check_job(admitted, new, argument, path)
  return meta.state[meta.COUNTED] and name_problem(admitted, new, path)
    or new[jobs.OPTIONS] ~= "" and M.check_tags(admitted, jobs.options(new).tags or {}, path)
    or key_problem(admitted, new, argument, path)
end

return M
