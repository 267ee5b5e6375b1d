-- Rolls out changes and removals of constraints, in steps as far as a call's budget goes. Until they are done, nothing
-- starts in queues with lanes. Each is recorded by its kind and the constraint's number, with how far it is.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local batch = require "jqlua.base.batch"
local constraints = require "jqlua.limits.constraints"
local due = require "jqlua.base.due"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local matcher = require "jqlua.limits.matcher"
local queues = require "jqlua.queue.queues"
local members = require "jqlua.queue.members"
local keyrecord = require "jqlua.limits.keyrecord"
local limitrecord = require "jqlua.limits.limitrecord"
local loaded = require "jqlua.limits.loaded"
local parking = require "jqlua.limits.parking"
local taking = require "jqlua.limits.taking"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

local PAGE = 50

-- Kinds of changes.
M.ADDED = "a" -- a new constraint: running jobs that match take units. Position: queue, and (score, id) in it
M.LIMITED = "r" -- limits changed or removed: its keys are checked again. Position: the last value

local function name_of(kind, number)
  return kind .. string.format("%d", number)
end

--- Records a change to roll out.
---@param kind string M.ADDED or M.LIMITED
function M.note(kind, number)
  call("HSET", keys.CHANGES, name_of(kind, number), "")
  meta.set(meta.PENDING, 1)
end

---@return string kind
---@return number number
local function parse(change)
  return change:sub(1, 1), tonumber(change:sub(2))
end

--- Whether a change is not yet rolled out.
function M.is_noted(kind, number)
  return call("HEXISTS", keys.CHANGES, name_of(kind, number)) == 1
end

--- Takes a unit for a running job that matches.
local function adopt_job(definition, id)
  local job = jobs.read(id)
  if not job then
    return
  end
  budget.pay(budget.STEP + budget.of_job(job) + constraints.weight(definition) * budget.CONDITION)
  local facts = constraints.facts(job)
  if not constraints.is_match(definition, facts, job) then
    return
  end
  local entry = constraints.entry(definition, facts, job)
  local units, entries = job_units.of(job), {}
  for i, known in ipairs(units and units[job_units.ENTRIES] or {}) do
    if known[job_units.NAME] == entry[job_units.NAME] then
      return
    end
    entries[i] = known
  end
  table.insert(entries, taking.occupy(entry))
  job_units.put(job, job_units.replaced(units, entries))
  jobs.save(job)
end

--- For a job that stops running but will run again, perhaps not counted yet: takes the units that it keeps until it
--- ends for good.
function M.catch_up(job)
  if meta.state[meta.PENDING] == 0 then
    return
  end
  for _, change in ipairs(call("HKEYS", keys.CHANGES)) do
    local kind, number = parse(change)
    local definition = kind == M.ADDED and constraints.load_number(number)
    if definition and definition.o then
      adopt_job(definition, job[jobs.ID])
    end
  end
end

--- Continues through the running jobs, in order of queue.
---@return string? at nil when done
local function adopt(number, at)
  local definition = constraints.load_number(number)
  if not definition then
    return nil
  end
  local place = at ~= "" and cmsgpack.unpack(at) or {}
  while budget.pay(budget.STEP) do
    if not place.name then
      local from = place.last and "(" .. place.last or "-"
      place.name = call("ZRANGEBYLEX", keys.QUEUE_NAMES, from, "+", "LIMIT", 0, 1)[1]
      if not place.name then
        return nil
      end
    end
    local running = {}
    if matcher.test(definition.m, { queue = place.name }) ~= false then
      running = members.next(queues.load(place.name), states.RUNNING, place.id and { place.score, place.id }, PAGE)
    end
    for _, member in ipairs(running) do
      place.score, place.id = member[1], member[2]
      adopt_job(definition, member[2])
      if not budget.is_left() then
        return cmsgpack.pack(place)
      end
    end
    if #running < PAGE then
      place = { last = place.name }
    end
  end
  return cmsgpack.pack(place)
end

--- Continues through the keys of a constraint.
---@return string? at nil when done
local function review(number, at)
  while budget.pay(budget.LOOK) do
    local from = at == "" and "-" or "(" .. at:sub(2)
    local values = call("ZRANGEBYLEX", keys.KEYS_OF .. number, from, "+", "LIMIT", 0, PAGE)
    for _, value in ipairs(values) do
      at = "=" .. value
      parking.review(keyrecord.load(number, value))
      if not budget.is_left() then
        return at
      end
    end
    if #values < PAGE then
      return nil
    end
  end
  return at
end

--- Carries out some more of the pending changes.
---@return boolean done whether none is left
function M.carry_out()
  while budget.pay(budget.LOOK) do
    local change, at
    local known = call("HGETALL", keys.CHANGES)
    for i = 1, #known, 2 do
      if not change or known[i] < change then
        change, at = known[i], known[i + 1]
      end
    end
    if not change then
      meta.set(meta.PENDING, 0)
      meta.save_constraints()
      due.set(due.CONSTRAINTS, meta.NONE)
      return true
    end
    local kind, number = parse(change)
    if kind == M.ADDED then
      at = adopt(number, at)
    else
      at = review(number, at)
    end
    if at then
      call("HSET", keys.CHANGES, change, at)
    else
      call("HDEL", keys.CHANGES, change)
    end
    batch.flush()
  end
  -- A sleeper is woken for the rest: jobs may be ready then.
  due.note(due.CONSTRAINTS, due.AT_ONCE)
  return false
end

--- Removes a constraint. Jobs that it held are released in steps, the first of them now.
---@param definition table
function M.remove(definition)
  constraints.delete(definition)
  limitrecord.delete(definition.n)
  -- Cached lookups of queues and names must be renewed.
  meta.set(meta.VERSION, meta.state[meta.VERSION] + 1)
  for name in pairs(loaded.lookups) do
    loaded.lookups[name] = nil
  end
  M.note(M.LIMITED, definition.n)
  M.carry_out()
  meta.save_constraints()
end

--- Removes a constraint if it has expired.
---@return number steps
function M.expire(id)
  local definition = constraints.load(id)
  budget.pay(budget.RECORD)
  if definition and definition.x and definition.x <= meta.state[meta.NOW_MS] then
    M.remove(definition)
  else
    due.set(due.EXPIRY .. id, definition and definition.x or meta.NONE)
  end
  return 1
end

return M
