-- Progress, message and argument that a worker reports of a running job.
local keys = require "jqlua.base.keys"
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local fields = require "jqlua.base.fields"
local events = require "jqlua.statistics.events"
local extras = require "jqlua.job.extras"
local jobs = require "jqlua.job.jobs"

local M = {}

local LONGEST_MESSAGE = 1024
local FIELDS = { progress = { "number", -1e300, 1e300 }, message = { "message" }, argument = {} }

--- Refuses the call for an argument that is not the index of a blob, each named once.
---@param used table indexes of blobs named so far
local function check_argument(value, path, used)
  local count = #ARGV - 1
  check.refuse((not check.is_integer(value, 0, count - 1) or used[value] or ARGV[value + 2] == "")
    and check.problem(path, "the index of one of the blobs behind the spec (" .. count
    .. ", none of them empty), each named once", value))
  used[value] = true
end

--- Checks the notes in [id, token, notes?], and that they name all blobs; refuses the call if they are wrong.
function M.check(list)
  local used, count = {}, 0
  for i, entry in ipairs(list) do
    local notes = entry[3]
    if notes ~= nil then
      local path = "jobs[" .. i - 1 .. "][2]"
      fields.check(notes, FIELDS, path)
      notes.message = notes.message and check.message(notes.message, LONGEST_MESSAGE)
      if notes.argument ~= nil then
        check_argument(notes.argument, path .. ".argument", used)
        count = count + 1
      end
    end
  end
  check.refuse(count == 0 and #ARGV > 1 and check.not_one_spec())
  check.refuse(count ~= #ARGV - 1 and "INVALID arguments: expected each blob behind the spec to be named by one job's"
    .. " argument, got " .. #ARGV - 1 .. " blobs and " .. count .. " names")
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
