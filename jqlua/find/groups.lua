-- Documents of groups of failures: how many jobs and since when, how many in each part of a period, and of the newest
-- jobs the names, queues, and values of arguments that several have.
local budget = require "jqlua.job.budget"
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local common_values = require "jqlua.find.common_values"
local documents = require "jqlua.values.documents"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local tally = require "jqlua.base.tally"

local M = {}

local call = redis.call

local MOST_TOLD = 10

--- Checks fields that depend on one another.
function M.check(spec)
  if not spec.steps then
    return fields.refuse(spec, "from_ms to_ms", "only valid with steps")
  end
  for _, field in ipairs({ "from_ms", "to_ms" }) do
    check.refuse(not spec[field] and check.problem(field, "ms since 1970, with steps", nil))
  end
  check.refuse(spec.to_ms <= spec.from_ms and "INVALID to_ms: expected a moment after from_ms")
end

--- How many failed in each part of the time.
---@return number[]
local function counts_of(key, spec, first_ms, last_ms)
  local counts, length = {}, (spec.to_ms - spec.from_ms) / spec.steps
  local begin_ms = spec.from_ms
  for i = 1, spec.steps do
    local end_ms = spec.from_ms + math.floor(length * i)
    local is_none = end_ms <= first_ms or begin_ms > last_ms
    counts[i] = is_none and 0
      or call("ZCOUNT", key, string.format("%.0f", begin_ms), string.format("(%.0f", end_ms))
    budget.pay(is_none and 0 or budget.LOOK)
    begin_ms = end_ms
  end
  return counts
end

--- Adds names and queues of the newest jobs of a group.
---@return string values that several have, packed
local function add_sample(shown, key, most)
  local ids = call("ZRANGE", key, 0, most - 1, "REV")
  local wanted = {}
  for i, id in ipairs(ids) do
    wanted[i] = keys.JOB .. id
  end
  local names, queues, values, looked = {}, {}, {}, 0
  for i, raw in ipairs(call("MGET", unpack(wanted))) do
    local job = jobs.from_record(ids[i], raw)
    if job then
      tally.add(names, job[jobs.NAME])
      tally.add(queues, job[jobs.QUEUE])
      common_values.count(values, ids[i])
      budget.pay(budget.LOOK + budget.of_bytes(raw))
    end
    looked = i
    if not budget.is_left() then
      break
    end
  end
  shown.looked, shown.names, shown.queues = looked, tally.most(names, MOST_TOLD), tally.most(queues, MOST_TOLD)
  return common_values.encode(values, MOST_TOLD)
end

---@param group string
---@param spec table as checked
---@return string? map nil if the group has no jobs
function M.encode(group, spec)
  local key = keys.FAILED .. group
  local first, last = call("ZRANGE", key, 0, 0, "WITHSCORES"), call("ZRANGE", key, -1, -1, "WITHSCORES")
  if not last[1] then
    return nil
  end
  local raw = call("GET", keys.EXTRA .. last[1])
  local first_ms, last_ms = tonumber(first[2]), tonumber(last[2])
  local shown = {
    group = group, count = call("ZCARD", key), first_ms = first_ms, last_ms = last_ms, id = last[1],
    message = raw and cmsgpack.unpack(raw).m or "",
    counts = spec.steps and counts_of(key, spec, first_ms, last_ms) or nil,
  }
  return documents.pack(shown, { values = spec.sample and add_sample(shown, key, spec.sample) or nil })
end

return M
