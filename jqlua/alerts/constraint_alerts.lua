-- Alerts about constraints: paths that lead nowhere, and those that are closed for long.
local alerts = require "jqlua.alerts.alerts"
local budget = require "jqlua.job.budget"
local constraintdoc = require "jqlua.limits.constraintdoc"
local constraints = require "jqlua.limits.constraints"
local jobpath = require "jqlua.values.jobpath"
local jobs = require "jqlua.job.jobs"
local keyrecord = require "jqlua.limits.keyrecord"
local keys = require "jqlua.base.keys"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local wording = require "jqlua.alerts.wording"

local M = {}

local call = redis.call

local LONG_MS = 3600000
local NOWHERE = "n" -- the value of a path that leads nowhere
local SAMPLE = 10 -- of a queue's newest jobs of each state; jobs
local ENOUGH = 3
local MOST_LANES = 100
local SAMPLED = "rwqdke" -- states
local MEANS = {
  by = "they share one key", cost = "each counts 1", match = "it limits none of them",
}

local function add_path(definition, field, path, count, level)
  alerts.add({
    kind = "path", level = level, constraint = definition.i,
    text = string.format("Limit %s: %s (%s) leads nowhere in %s: %s", wording.name(definition.i), path, field,
      wording.count(count, "job"), MEANS[field]),
    advice = "See the argument of one of them: the path has to lead to a value there.",
    values = { field = field, path = path },
  }, count)
end

--- Whether jobs are held under the key of those in which the paths lead nowhere.
---@return boolean # whether there was something to report
local function check_key(definition)
  local values = {}
  for i in ipairs(definition.b) do
    values[i] = NOWHERE
  end
  local key = keyrecord.load(definition.n, constraints.join(values))
  local held = key.places[1] and constraintdoc.held_by(key, nil, MOST_LANES).jobs or 0
  budget.pay(budget.STEP)
  if held > 0 then
    local by = type(definition.bg) == "table" and table.concat(definition.bg, ", ") or definition.bg
    add_path(definition, "by", by, held + key.in_use, alerts.PROBLEM)
  end
  return held > 0
end

--- The only text that a condition allows.
---@return string? text nil if there is none, or several
---@return boolean is_open whether there is no condition
local function text_of(condition)
  if type(condition) == "table" and condition.eq ~= nil and next(condition, next(condition)) == nil then
    condition = condition.eq
  end
  local is_text = type(condition) == "string" and not condition:find("*", 1, true)
  return is_text and condition or nil, condition == nil
end

--- Whether a job that has nothing at a path fails the condition there.
local function needs_value(condition)
  if type(condition) ~= "table" then
    return true
  end
  for operator, operand in pairs(condition) do
    if operator ~= "ne" and not (operator == "exists" and operand == false) then
      return true
    end
  end
  return false
end

--- The paths into arguments that a constraint reads: {field, path} each.
local function paths_of(definition, match)
  local paths = {}
  local function add(field, path)
    if type(path) == "string" and path:sub(1, 9) == "argument." then
      paths[#paths + 1] = { field, path }
    end
  end
  for path, condition in pairs(match) do
    add("match", needs_value(condition) and path)
  end
  add("cost", definition.kg)
  for _, path in ipairs(type(definition.bg) == "table" and definition.bg or { definition.bg }) do
    add("by", path)
  end
  return paths
end

--- Newest jobs of a queue, perhaps of one name.
local function newest(queue_name, name)
  local queue, found = queues.load(queue_name), {}
  for state in SAMPLED:gmatch(".") do
    for _, id in ipairs(call("ZRANGE", queues.key(queue, state), -SAMPLE, -1)) do
      local job = jobs.read(id)
      budget.pay(budget.LOOK)
      if job and (not name or job[jobs.NAME] == name) then
        found[#found + 1] = job
      end
    end
  end
  return found
end

--- Looks whether the paths lead anywhere in the newest jobs of the queue that a constraint is for.
local function check_paths(definition)
  local is_read, match = pcall(cmsgpack.unpack, definition.g)
  if not is_read then
    return
  end
  local name, is_any_name = text_of(match.name)
  local queue_name, is_any_queue = text_of(match.queue)
  local paths = paths_of(definition, match)
  if not paths[1] or not (name or is_any_name) or not (queue_name or is_any_queue and name) then
    return
  end
  local sample = newest(queue_name or name, name)
  for _, entry in ipairs(#sample >= ENOUGH and paths or {}) do
    local path, is_there = jobpath.parse(entry[2], "path", true), false
    for _, job in ipairs(sample) do
      local argument = call("GET", keys.ARGUMENT .. job[jobs.ID]) or ""
      budget.pay(budget.LOOK + budget.of_bytes(argument))
      is_there = is_there or (jobpath.look(path, { argument = argument }))
    end
    if not is_there then
      add_path(definition, entry[1], entry[2], #sample, alerts.NOTE)
    end
  end
end

--- Whether a constraint without keys is closed for long.
local function check_closed(definition)
  local key = keyrecord.load(definition.n, "")
  local opens_ms = math.max(key.hold_ms, key.opens_ms)
  local left_ms = opens_ms - meta.state[meta.NOW_MS]
  local held = left_ms > LONG_MS and constraintdoc.held_by(key, nil, MOST_LANES).jobs or 0
  if held > 0 then
    alerts.add({
      kind = "closed", level = alerts.WARNING, constraint = definition.i,
      text = string.format("Limit %s is %s for another %s and holds %s", wording.name(definition.i),
        key.hold_ms == opens_ms and "on hold" or "closed", wording.span(left_ms),
        wording.count(held, "job")),
      advice = "Release the hold, or raise the limit, if that is not meant.", values = { opens_ms = opens_ms },
    }, held)
  end
end

---@param id string
function M.check(id)
  local definition = constraints.load(id)
  if not definition or not limitrecord.load(definition.n) then
    return
  elseif not definition.b then
    check_closed(definition)
  elseif check_key(definition) then
    return
  end
  check_paths(definition)
end

return M
