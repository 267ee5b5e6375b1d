-- Parses and checks schedules.
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local cron = require "jqlua.schedules.cron"
local jobspec = require "jqlua.job.jobspec"
local zones = require "jqlua.schedules.zones"

local M = {}

local NIL = "\192" -- packed: what stands where there is no argument
local FIELDS = "id every offset cron utc_offset tz timezone start end limit catch_up backlog paused declared job actor"

---@return string? problem
local function check_zone(spec)
  if spec.tz == nil then
    return spec.timezone ~= nil and "INVALID tz: expected the rule of the timezone, got nothing" or nil
  elseif spec.utc_offset ~= nil then
    return "INVALID utc_offset: expected either utc_offset or tz, got both"
  end
  local rule, problem = zones.parse(spec.tz)
  if not rule then
    return "INVALID tz: " .. problem
  elseif spec.timezone ~= nil and not check.is_name(spec.timezone) then
    return check.problem("timezone", check.NAME, spec.timezone)
  end
end

---@return string? problem
local function check_when(spec)
  if spec.every == nil and spec.cron == nil then
    return "INVALID every: expected every or cron, got neither"
  elseif spec.every ~= nil and spec.cron ~= nil then
    return "INVALID cron: expected either every or cron, got both"
  elseif spec.every ~= nil then
    if not check.is_number(spec.every, 0.1, 1e9) then
      return check.problem("every", "seconds from 0.1 to 10^9", spec.every)
    end
    for _, field in ipairs({ "utc_offset", "tz", "timezone" }) do
      if spec[field] ~= nil then
        return "INVALID " .. field .. ": only valid with cron"
      end
    end
    if spec.offset ~= nil and not check.is_number(spec.offset, 0, spec.every) then
      return check.problem("offset", "seconds from 0 to every", spec.offset)
    end
    return nil
  end
  local parsed, problem = cron.parse(spec.cron)
  if not parsed then
    return "INVALID cron: " .. problem
  elseif spec.offset ~= nil then
    return "INVALID offset: only valid with every"
  elseif spec.utc_offset ~= nil and not check.is_integer(spec.utc_offset, -1440, 1440) then
    return check.problem("utc_offset", "whole minutes from -1440 to 1440", spec.utc_offset)
  end
  return check_zone(spec)
end

---@return string? problem
local function check_limits(spec)
  for _, field in ipairs({ "start", "end" }) do
    if spec[field] ~= nil and not check.is_number(spec[field], 0, 1e10) then
      return check.problem(field, "Unix seconds from 0 to 10^10", spec[field])
    end
  end
  local catch_up = spec.catch_up
  if spec.start and spec["end"] and spec["end"] < spec.start then
    return check.problem("end", "a moment not before start", spec["end"])
  elseif spec.limit ~= nil and not check.is_integer(spec.limit, 1, 1e9) then
    return check.problem("limit", "an integer from 1 to 10^9", spec.limit)
  elseif catch_up ~= nil and catch_up ~= "one" and catch_up ~= "all" and catch_up ~= "none" then
    return check.problem("catch_up", "one, all or none", catch_up)
  elseif spec.backlog ~= nil and not check.is_integer(spec.backlog, 1, 1000) then
    return check.problem("backlog", "an integer from 1 to 1000", spec.backlog)
  elseif spec.paused ~= nil and type(spec.paused) ~= "boolean" then
    return check.problem("paused", "true or false", spec.paused)
  elseif spec.declared ~= nil and not check.is_name(spec.declared) then
    return check.problem("declared", check.NAME, spec.declared)
  end
end

---@return string? problem
local function check_job(job_spec)
  if type(job_spec) ~= "table" then
    return check.problem("job", "a map, as enqueue takes it", job_spec)
  end
  for _, field in ipairs({ "run_at", "depends" }) do
    if job_spec[field] ~= nil then
      return "INVALID job." .. field .. ": not valid for the job of a schedule"
    end
  end
  local read, problem = jobspec.read(job_spec, "job", 0)
  if read and type(job_spec.headers) == "table" and next(job_spec.headers) == nil then
    job_spec.headers = nil -- like a job's; it would be shown as an empty list
  end
  return problem
end

--- Parses the argument of a call that creates the job at once.
---@return table? spec nil for another call
function M.parse_run()
  local spec = (#ARGV == 1 or #ARGV == 2 and ARGV[2] == NIL) and check.map(ARGV[1])
  if not spec or spec.run == nil then
    return nil
  end
  check.refuse(check.unknown_field(spec, "id run actor"))
  check.refuse(not check.is_name(spec.id) and check.problem("id", check.NAME, spec.id))
  check.refuse(spec.run ~= true and check.problem("run", "true", spec.run) or arguments.check_actor(spec))
  return spec
end

--- Parses the call's arguments: a spec and an argument.
---@return table spec
function M.parse()
  check.refuse(#ARGV ~= 2 and "INVALID arguments: expected a spec and an argument, got " .. #ARGV)
  local spec = check.map(ARGV[1])
  check.refuse(not spec and check.not_a_map("spec", ARGV[1]))
  check.refuse(check.unknown_field(spec, FIELDS))
  check.refuse(not check.is_name(spec.id) and check.problem("id", check.NAME, spec.id))
  check.refuse(arguments.check_actor(spec) or check_when(spec) or check_limits(spec) or check_job(spec.job))
  check.refuse(ARGV[2] == "" and "INVALID argument: expected one MessagePack value, got no bytes")
  return spec
end

return M
