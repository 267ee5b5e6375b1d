-- Constraints: their definitions, and which of them a job is subject to.
--
-- Each definition has its own number, which names its keys. A constraint whose matcher changes gets a new number, since
-- the state under the old one is of no use. An old number has no limits and holds nothing.
local batch = require "jqlua.base.batch"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local jobpath = require "jqlua.values.jobpath"
local matcher = require "jqlua.limits.matcher"
local memory = require "jqlua.base.memory"
local keyrecord = require "jqlua.limits.keyrecord"
local job_units = require "jqlua.limits.job_units"

local M = {}

-- Conditions that may be tested for the jobs of one call, if there are several: some tenths of a second.
local MOST_ASKED = 300000

local call = redis.call

M.MOST = 1000

M.LONGEST_VALUE = 64

-- By queue and name, with a zero byte between, the definitions that may match.
local lookups = {}
local all = {} -- definitions, in no order
local demanded = {} -- lists of these by what their matchers demand; [1]: those that demand neither queue nor name
local asked = {} -- conditions to test for the jobs of this call, and how many jobs they are

--- The definition of a constraint.
---@return table? definition {n number, i id, m matcher, g matcher as given, b paths, bg by as given, c concurrency,
--- l limit, p period_s, d declared, and of a partition that has a part
--- of them tc and tl: concurrency and limit of all together}
function M.load(id)
  local raw = call("HGET", keys.CONSTRAINTS, id)
  return raw and cmsgpack.unpack(raw) or nil
end

--- All definitions, read once in a call.
---@return table[] # in no order, read-only
function M.all()
  if not all[1] then
    for i, raw in ipairs(call("HVALS", keys.CONSTRAINTS)) do
      all[i] = cmsgpack.unpack(raw)
    end
  end
  return all
end

--- The definitions that do not demand another queue or name.
---@return table[] # in no order
function M.candidates(queue_name, name)
  if not demanded[1] then
    demanded[1] = {}
    for _, definition in ipairs(M.all()) do
      local value = matcher.demanded(definition.m) or 1
      demanded[value] = demanded[value] or {}
      table.insert(demanded[value], definition)
    end
  end
  local list = { unpack(demanded[1]) }
  for _, value in ipairs({ matcher.QUEUE .. "s" .. queue_name, matcher.NAME .. "s" .. name }) do
    for _, definition in ipairs(demanded[value] or {}) do
      list[#list + 1] = definition
    end
  end
  budget.pay(#list * budget.CONDITION)
  return list
end

---@param definition table
function M.save(definition)
  call("HSET", keys.CONSTRAINTS, definition.i, cmsgpack.pack(definition))
  call("ZADD", keys.CONSTRAINT_IDS, 0, definition.i)
  keyrecord.set_limit(definition)
end

function M.delete(definition)
  call("HDEL", keys.CONSTRAINTS, definition.i)
  call("ZREM", keys.CONSTRAINT_IDS, definition.i)
  keyrecord.delete_limit(definition.n)
end

--- The facts of a job that matchers test. The argument is known only when needed.
---@param argument? string
function M.facts(job, argument)
  return {
    name = job[jobs.NAME], queue = job[jobs.QUEUE], priority = job[jobs.PRIORITY], given = argument,
    tags = job[jobs.OPTIONS] ~= "" and jobs.options(job).tags or {},
  }
end

--- Pays for reading it as well, for callers that go through jobs which the call did not name.
local function add_argument(facts, job)
  facts.argument = facts.given or call("GET", keys.ARGUMENT .. job[jobs.ID]) or ""
  budget.pay(budget.of_argument(facts.argument))
end

---@return boolean
function M.is_match(definition, facts, job)
  local answer = matcher.test(definition.m, facts)
  if answer == nil then
    add_argument(facts, job)
    answer = matcher.test(definition.m, facts)
  end
  return answer == true
end

--- A value in the form that names keys, of bounded length.
function M.shorten(value)
  if #value <= M.LONGEST_VALUE + 1 then
    return value
  end
  return "h" .. value:sub(1, 1) .. redis.sha1hex(value:sub(2))
end

--- The values of several paths, as one; "" of none.
---@param values string[]
function M.join(values)
  if #values <= 1 then
    return values[1] or ""
  end
  local parts = {}
  for i, value in ipairs(values) do
    parts[i] = string.char(#value) .. value
  end
  return table.concat(parts)
end

--- The values that were joined.
---@return string[]
function M.split(joined, count)
  if count == 1 then
    return { joined }
  end
  local values, at = {}, 1
  for i = 1, count do
    values[i], at = struct.unpack("Bc0", joined, at)
  end
  return values
end

--- The value of a path in a job, in the form that names keys.
function M.value(path, facts, job)
  if not facts.argument then
    add_argument(facts, job)
  end
  return M.shorten(jobpath.value(path, facts))
end

---@return table entry of units
function M.entry(definition, facts, job)
  if definition.entry then
    return definition.entry -- it is the same for all jobs
  end
  local values = {}
  for i, path in ipairs(definition.b or {}) do
    values[i] = M.value(path, facts, job)
  end
  local entry = job_units.entry(definition.n, M.join(values))
  if not definition.b then
    definition.entry = entry
  end
  return entry
end

-- Definitions that may match, by the bytes that are stored for a queue and a name; with the version of the set.
local known = KEPT

--- Decodes stored definitions that may match.
---@param raw string
local function decode(raw)
  local list = #raw > 4 and cmsgpack.unpack(raw:sub(5)) or {}
  list.version = struct.unpack(">I4", raw)
  return memory.keep(known, raw, list)
end

local function look_up(queue_name, name)
  local list, facts = {}, { name = name, queue = queue_name }
  for _, definition in ipairs(M.candidates(queue_name, name)) do
    if matcher.test(definition.m, facts) ~= false then
      list[#list + 1] = { n = definition.n, m = definition.m, b = definition.b }
    end
  end
  table.sort(list, function(a, b)
    return a.n < b.n
  end)
  return list
end

--- The definitions that may match jobs of that queue and name, by number. Looked up once for each version of the
--- set of constraints, then stored with what else the call writes.
---@param queue_name string
---@param name string
---@return table[] # read-only
function M.matching(queue_name, name)
  local pair = queue_name .. "\0" .. name
  local list = lookups[pair]
  if list then
    return list
  end
  local version, raw = meta.state[meta.VERSION], call("GET", keys.MATCHING .. pair)
  list = raw and (known[raw] or decode(raw))
  if not list or list.version ~= version then
    list = look_up(queue_name, name)
    batch.write(keys.MATCHING .. pair, struct.pack(">I4", version) .. (list[1] and cmsgpack.pack(list) or ""))
  end
  lookups[pair] = list
  return list
end

--- How many conditions must be tested for a job.
---@param list table[] definitions that may match
local function weight_of(list)
  if not list.weight then
    list.weight = 0
    for _, definition in ipairs(list) do
      list.weight = list.weight + matcher.weight(definition.m)
    end
  end
  return list.weight
end

--- The units that every job of a queue and name needs, if they depend on nothing else.
---@param list table[] definitions that may match
local function find_fixed(list, queue_name, name)
  local facts, entries = { queue = queue_name, name = name }, {}
  for i, definition in ipairs(list) do
    if definition.b or not matcher.test(definition.m, facts) then
      return false
    end
    entries[i] = M.entry(definition)
  end
  return { entries = entries, units = false }
end

--- Like entries, if they are the same for all jobs of a queue and name.
---@return table|false fixed {entries, read-only; units, of jobs that wait with nothing else, once known}
function M.fixed(queue_name, name)
  local list = M.matching(queue_name, name)
  local known_fixed, pair = list.fixed, queue_name .. "\0" .. name
  if not known_fixed then
    known_fixed = {}
    list.fixed = known_fixed
  end
  if known_fixed[pair] == nil then
    known_fixed[pair] = memory.keep(known_fixed, pair, find_fixed(list, queue_name, name))
  end
  return known_fixed[pair]
end

--- Checks the call's limit for matching the jobs that it brings or names: refuses the call beyond it.
---@param new_jobs table[] as module job.jobspec parses them, or module job.jobs reads them
---@param path string of their list
function M.check_asked(new_jobs, path)
  local weighed = asked
  if meta.state[meta.VERSION] == 0 then
    return
  end
  for _, new in ipairs(new_jobs) do
    local queue_name, name = new[jobs.QUEUE], new[jobs.NAME]
    if not M.fixed(queue_name, name) then
      weighed[1] = (weighed[1] or 0) + weight_of(M.matching(queue_name, name))
    end
  end
  weighed[2] = (weighed[2] or 0) + #new_jobs
  check.refuse(weighed[2] > 1 and (weighed[1] or 0) > MOST_ASKED
    and string.format("INVALID %s: constraints would test more than %d conditions for the jobs of this call: "
    .. "send fewer at once", path, MOST_ASKED))
end

--- The units that a job needs under the present constraints. Pays for it, for callers that go through jobs which the
--- call did not name.
---@param facts table
---@return table[] entries by number
function M.entries(job, facts)
  local entries, list = {}, M.matching(job[jobs.QUEUE], job[jobs.NAME])
  budget.pay(weight_of(list) * budget.CONDITION)
  for _, definition in ipairs(list) do
    if M.is_match(definition, facts, job) then
      entries[#entries + 1] = M.entry(definition, facts, job)
    end
  end
  return entries
end

return M
