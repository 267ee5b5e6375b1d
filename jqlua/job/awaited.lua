-- Jobs whose end or result is waited for.
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"

local M = {}

local CHUNK = 1000

--- Reads many records with one command, for callers that then look at one after the other.
---@param ids string[]
function M.fetch(ids)
  for first = 1, #ids, CHUNK do
    local last, names = math.min(first + CHUNK - 1, #ids), {}
    for i = first, last do
      names[#names + 1] = keys.JOB .. ids[i]
    end
    for i, raw in ipairs(redis.call("MGET", unpack(names))) do
      jobs.from_record(ids[first + i - 1], raw)
    end
  end
end

--- Marks a job as waited for.
function M.note(job)
  if not jobs.has(job, jobs.AWAITED) then
    jobs.set(job, jobs.AWAITED)
    jobs.save(job)
  end
end

return M
