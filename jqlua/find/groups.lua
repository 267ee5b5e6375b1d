-- Documents of groups of failures: how many jobs and since when, how many in each part of a period, and of the newest
-- jobs the names, queues, and values of arguments that several have.
local budget = require "jqlua.job.budget"
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local constraintdoc = require "jqlua.limits.constraintdoc"
local documents = require "jqlua.values.documents"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local msgpack = require "jqlua.values.msgpack"
local tally = require "jqlua.find.tally"

local M = {}

local call = redis.call
local pack = cmsgpack.pack

local MOST_TOLD = 10
-- So many bytes of an argument are read, and so many of its values, none in nested maps or lists.
local READ = 4096
local MOST_VALUES = 20

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

--- Visits values of an argument with their paths, in the form that names keys of constraints.
---@param visit fun(path: string, value: string)
local function each_value(blob, visit)
  if #blob < READ and not msgpack.is_whole(blob) then
    return
  end
  local pos, count, is_map = msgpack.open(blob, 1)
  local function tell(path, at)
    local value = msgpack.canonical(blob, at)
    if value and #value <= constraints.LONGEST_VALUE + 1 then
      visit(path, value)
    end
  end
  if not pos then
    return tell("argument", 1)
  end
  for i = 0, math.min(count, MOST_VALUES) - 1 do
    local name = is_map and msgpack.canonical(blob, pos) or "i" .. i
    local at = is_map and msgpack.skip(blob, pos) or pos
    pos = at and msgpack.skip(blob, at)
    if not pos then
      return -- the rest was not read
    end
    local text = name and name:match("^[si](.+)")
    if text and #text <= constraints.LONGEST_VALUE then
      tell("argument." .. text:gsub("[.\\]", "\\%0"), at)
    end
  end
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
      local blob = call("GET", keys.ARGUMENT .. ids[i]) or ""
      each_value(blob:sub(1, READ), function(path, value)
        tally.add(values, struct.pack(">I2", #path) .. path .. value)
      end)
      budget.pay(2 * budget.LOOK + budget.of_bytes(raw) + 2 * budget.of_bytes(blob))
    end
    looked = i
    if not budget.is_left() then
      break
    end
  end
  for value, times in pairs(values) do
    values[value] = times > 1 and times or nil
  end
  local common = tally.most(values, MOST_TOLD)
  for i, pair in ipairs(common) do
    local packed, times = pair[1], pair[2]
    local size = struct.unpack(">I2", packed)
    common[i] = "\147" .. pack(packed:sub(3, 2 + size)) .. constraintdoc.value_blob(packed:sub(3 + size)) .. pack(times)
  end
  shown.looked, shown.names, shown.queues = looked, tally.most(names, MOST_TOLD), tally.most(queues, MOST_TOLD)
  return documents.list(common)
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
