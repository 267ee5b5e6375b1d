-- Parses and checks schedules.
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local cron = require "jqlua.schedules.cron"
local jobspec = require "jqlua.job.jobspec"
local zones = require "jqlua.schedules.zones"

local M = {}

local NIL = "\192" -- packed: what stands where there is no argument

local function check_when(spec)
  check.refuse(not spec.every and not spec.cron and "INVALID every: expected every or cron, got neither")
  check.refuse(spec.every and spec.cron and "INVALID cron: expected either every or cron, got both")
  if spec.every then
    return fields.refuse(spec, "tz timezone", "only valid with cron")
  end
  local parsed, problem = cron.parse(spec.cron)
  check.refuse(not parsed and "INVALID cron: " .. (problem or ""))
  check.refuse(spec.timezone and not spec.tz and "INVALID tz: expected the rule of the timezone, got nothing")
  parsed, problem = zones.parse(spec.tz or zones.UTC)
  check.refuse(not parsed and "INVALID tz: " .. (problem or ""))
end

--- Whether the call only has the schedule make its job at once. Refuses the call if its arguments are wrong.
---@param spec table the call's
---@return boolean is_run
function M.check(spec)
  if spec.run ~= nil then
    for name in pairs(spec) do
      check.refuse(name ~= "id" and name ~= "run" and name ~= "actor"
        and "INVALID " .. name .. ": not valid with run")
    end
    check.refuse(not spec.run and check.problem("run", "true", spec.run))
    check.refuse((ARGV[2] or NIL) ~= NIL and "INVALID argument: not valid with run")
    return true
  end
  check.refuse(#ARGV ~= 2 and "INVALID arguments: expected a spec and an argument, got " .. #ARGV)
  check.refuse(ARGV[2] == "" and "INVALID argument: expected one MessagePack value, got no bytes")
  check_when(spec)
  local job = spec.job
  check.refuse(type(job) ~= "table" and check.problem("job", "a map, as enqueue takes it", job))
  for _, field in ipairs({ "run_at", "depends" }) do
    check.refuse(job[field] ~= nil and "INVALID job." .. field .. ": not valid for the job of a schedule")
  end
  jobspec.check(job, "job", 0)
  if job.headers and not next(job.headers) then
    job.headers = nil -- like a job's; it would be shown as an empty list
  end
  return false
end

return M
