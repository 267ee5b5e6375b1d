-- Releases jobs: they return to their queues.
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local attempts = require "jqlua.life.attempts"

local M = {}

---@param pairs_held table[] {id, token}
---@param delay_s number
---@param each? fun(job: table) called for each job that was released
---@param before? fun(job: table) called for each job before
---@param message? string why, for the history
---@return string[] answers
function M.all(pairs_held, delay_s, each, before, message)
  local answers = {}
  for i, pair in ipairs(pairs_held) do
    local job = jobs.read(pair[1])
    if not job then
      answers[i] = "NOTFOUND"
    elseif attempts.is_running(job, pair[2]) then
      if before then
        before(job)
      end
      answers[i] = attempts.release(job, delay_s, message)
      if each then
        each(job)
      end
    else
      local how = attempts.how_ended(job, pair[2])
      answers[i] = how == jobs.TAKEN and "CANCELLED" or how ~= jobs.GIVEN_BACK and "LOST"
        or job[jobs.STATE] == states.SCHEDULED and "scheduled"
        or "queued"
    end
  end
  return answers
end

return M
