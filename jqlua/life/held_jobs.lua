-- Lists of [id, token] by which workers name the jobs they hold.
local attempts = require "jqlua.life.attempts"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"

local M = {}

--- Checks the field `jobs`: refuses the call if it is wrong.
---@param least number
---@param most? number 3: each may have notes behind it
function M.check(list, least, most)
  check.refuse(not check.is_list(list, least, 1000)
    and check.problem("jobs", "a list of " .. least .. " to 1000 pairs [id, token]", list))
  for i, pair in ipairs(list) do
    local is_pair = check.is_list(pair, 2, most or 2)
    if not is_pair or not check.is_id(pair[1]) or not check.is_token(pair[2]) then
      local path, pair_text = "jobs[" .. i - 1 .. "]", most and "[id, token] or [id, token, notes]" or "[id, token]"
      check.refuse(not is_pair and check.problem(path, pair_text, pair)
        or not check.is_id(pair[1]) and check.problem(path .. "[0]", check.ID, pair[1])
        or check.problem(path .. "[1]", check.TOKEN, pair[2]))
    end
  end
end

--- Releases jobs: they return to their queues.
---@param pairs_held table[] {id, token}
---@param delay_s number
---@param before? fun(job: table) called for each job before
---@param message? string why, for the history
---@return string[] answers
function M.release(pairs_held, delay_s, before, message)
  local answers = {}
  for i, pair in ipairs(pairs_held) do
    local job = jobs.read(pair[1])
    if job and attempts.is_running(job, pair[2]) then
      if before then
        before(job)
      end
      answers[i] = attempts.release(job, delay_s, message)
    else
      answers[i] = attempts.stale_answer(job, pair[2], jobs.GIVEN_BACK)
    end
  end
  return answers
end

return M
