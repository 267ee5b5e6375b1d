-- Parses and checks changes of a job's dependencies.
local keys = require "jqlua.base.keys"
local check = require "jqlua.base.check"
local dependents = require "jqlua.links.dependents"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local jobspec = require "jqlua.job.jobspec"
local links = require "jqlua.links.links"
local readers = require "jqlua.links.readers"
local serial = require "jqlua.base.serial"

local M = {}

local MOST_LOOKS = 1000
local MOST_CHANGED = 100

---@return string? problem
local function check_ids(value, field)
  if not check.is_list(value, 0, MOST_CHANGED) then
    return check.problem(field, "a list of at most " .. MOST_CHANGED .. " job ids", value)
  end
  return check.distinct(value, field, check.is_id, check.ID)
end

---@return string? problem
function M.check(spec)
  local problem = not check.is_id(spec.id) and check.problem("id", check.ID, spec.id)
    or spec.add ~= nil and check_ids(spec.add, "add") or spec.remove ~= nil and check_ids(spec.remove, "remove")
    or spec.if_failed ~= nil and jobspec.check_choice("if_failed", spec.if_failed, "if_failed")
  if problem then
    return problem
  end
  for i, id in ipairs(spec.add or {}) do
    for _, removed in ipairs(spec.remove or {}) do
      if id == removed then
        return "INVALID add[" .. i - 1 .. "]: " .. check.show(id) .. " is also in remove"
      end
    end
  end
end

--- The ids a job depends on after the change, in order.
---@return string[]
local function resulting(options, spec)
  local gone, known, all = {}, {}, {}
  for _, id in ipairs(spec.remove or {}) do
    gone[id] = true
  end
  for _, list in ipairs({ options.depends or {}, spec.add or {} }) do
    for _, id in ipairs(list) do
      if not gone[id] and not known[id] then
        known[id] = true
        all[#all + 1] = id
      end
    end
  end
  return all
end

---@return table? job
---@return string[]? added ids of jobs that it has to wait for
---@return string? problem
function M.read(spec)
  local job = jobs.read(spec.id)
  if not job then
    return nil, nil, check.missing("id", "job", spec.id)
  elseif job[jobs.ATTEMPT] > 0 or not states.is_of(job[jobs.STATE], states.WAITING) then
    return nil, nil, "CONFLICT id: job " .. spec.id .. " is " .. states.name(job[jobs.STATE])
      .. ", expected one that is queued, scheduled or blocked and never started"
  end
  local options = jobs.copy_options(job)
  if #resulting(options, spec) > jobspec.MOST_DEPENDS then
    return nil, nil, "INVALID add: expected at most " .. jobspec.MOST_DEPENDS .. " dependencies in all"
  end
  local last = redis.call("GET", keys.SEQ) or ""
  local added = {}
  for i, id in ipairs(spec.add or {}) do
    local path = "add[" .. i - 1 .. "]"
    local problem = serial.id_problem(path, id, last)
    if problem then
      return nil, nil, problem
    end
    local is_circle = links.reaches({ id }, spec.id, MOST_LOOKS)
    if is_circle then
      return nil, nil, "CONFLICT " .. path .. ": " .. id .. " waits for this job"
    elseif is_circle == nil then
      return nil, nil, "CONFLICT " .. path .. ": more than " .. MOST_LOOKS .. " jobs to look at for a circle"
    end
    if dependents.must_wait(id, spec.if_failed or options.if_failed) then
      added[#added + 1] = id
    end
  end
  return job, added
end

--- Stores the dependencies in the job's record.
function M.note(job, spec)
  local options = jobs.copy_options(job)
  local all = resulting(options, spec)
  options.depends = all[1] and all or nil
  options.if_failed = spec.if_failed or options.if_failed
  jobs.set_options(job, options)
  readers.leave(job[jobs.ID], spec.remove or {})
  readers.enter(job[jobs.ID], spec.add or {})
end

return M
