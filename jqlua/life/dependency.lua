-- Parses and checks changes of a job's dependencies.
local keys = require "jqlua.base.keys"
local check = require "jqlua.base.check"
local dependents = require "jqlua.life.dependents"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local jobspec = require "jqlua.job.jobspec"
local links = require "jqlua.links.links"
local readers = require "jqlua.links.readers"
local serial = require "jqlua.base.serial"

local M = {}

local MOST_LOOKS = 1000
local MOST_DEPENDS = jobspec.OPTIONS.depends[3]

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

--- Reads the job, and checks what it is to wait for.
---@return table job
---@return string[] added ids of jobs that it has to wait for
function M.read(spec)
  local job, gone = jobs.read(spec.id), {}
  for _, id in ipairs(spec.remove or {}) do
    gone[id] = true
  end
  for i, id in ipairs(spec.add or {}) do
    check.refuse(gone[id] and "INVALID add[" .. i - 1 .. "]: " .. check.show(id) .. " is also in remove")
  end
  check.refuse(not job and check.missing("id", "job", spec.id))
  check.refuse((job[jobs.ATTEMPT] > 0 or not states.is_of(job[jobs.STATE], states.WAITING))
    and "CONFLICT id: job " .. spec.id .. " is " .. states.name(job[jobs.STATE])
    .. ", expected one that is queued, scheduled or blocked and never started")
  local options = jobs.copy_options(job)
  check.refuse(#resulting(options, spec) > MOST_DEPENDS
    and "INVALID add: expected at most " .. MOST_DEPENDS .. " dependencies in all")
  local last, added = redis.call("GET", keys.SEQ) or "", {}
  for i, id in ipairs(spec.add or {}) do
    local path = "add[" .. i - 1 .. "]"
    serial.check_id(path, id, last)
    local is_circle = links.reaches({ id }, spec.id, MOST_LOOKS)
    check.refuse(is_circle and "CONFLICT " .. path .. ": " .. id .. " waits for this job")
    check.refuse(is_circle == nil
      and "CONFLICT " .. path .. ": more than " .. MOST_LOOKS .. " jobs to look at for a circle")
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
