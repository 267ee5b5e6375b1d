-- Progress, message and argument that a worker reports of a running job.
local keys = require "jqlua.base.keys"
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local events = require "jqlua.statistics.events"
local extras = require "jqlua.job.extras"
local jobs = require "jqlua.job.jobs"

local M = {}

local LONGEST_MESSAGE = 1024
local FIELDS = "progress message argument"

---@param used table indexes of blobs named so far
---@return string? problem
local function check_notes(notes, path, used)
  if type(notes) ~= "table" then
    return check.problem(path, "a map", notes)
  end
  for field, value in pairs(notes) do
    local expected
    if field == "progress" then
      expected = not check.is_number(value, -1e300, 1e300) and "a number"
    elseif field == "message" then
      notes.message = type(value) == "string" and check.message(value, LONGEST_MESSAGE) or nil
      expected = not notes.message and "text"
    elseif field == "argument" then
      local count = #ARGV - 1
      expected = (not check.is_integer(value, 0, count - 1) or used[value] or ARGV[value + 2] == "")
        and "the index of one of the blobs behind the spec (" .. count
        .. ", none of them empty), each named once"
      if not expected then
        used[value] = true
      end
    else
      return check.unknown(path, field, FIELDS)
    end
    if expected then
      return check.problem(path .. "." .. field, expected, value)
    end
  end
end

--- Checks the notes in [id, token, notes?], and that they name all blobs.
---@return string? problem
function M.check(list)
  local used, count = {}, 0
  for i, entry in ipairs(list) do
    local problem = entry[3] ~= nil and check_notes(entry[3], "jobs[" .. i - 1 .. "][2]", used)
    if problem then
      return problem
    end
  end
  for _ in pairs(used) do
    count = count + 1
  end
  if count == 0 and #ARGV > 1 then
    return check.not_one_spec()
  elseif count ~= #ARGV - 1 then
    return "INVALID arguments: expected each blob behind the spec to be named by one job's argument, got " .. #ARGV - 1
      .. " blobs and " .. count .. " names"
  end
end

--- Stores notes of a running job; the caller saves its record.
function M.write(job, notes)
  if notes.argument then
    batch.write(keys.ARGUMENT .. job[jobs.ID], ARGV[notes.argument + 2])
  end
  if notes.progress or notes.message then
    local extra = extras.read(job)
    extra.p = notes.progress or extra.p
    extra.t = notes.message or extra.t
    extras.save(job, extra)
    jobs.save(job)
    if jobs.options(job).track then -- for all jobs there would be too many events
      events.report(job, "progress", { progress = extra.p, message = extra.t })
    end
  end
end

return M
