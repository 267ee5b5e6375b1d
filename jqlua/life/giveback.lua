-- Jobs that go back to their queues because whoever had them does not want them.
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local attempt = require "jqlua.life.attempt"
local check = require "jqlua.base.check"

local M = {}

local LONGEST_MESSAGE = 65536

--- Checks the field `message`.
---@return string? problem
function M.check_message(message)
  if message ~= nil and (type(message) ~= "string" or #message > LONGEST_MESSAGE) then
    return check.problem("message", "text of at most " .. LONGEST_MESSAGE .. " bytes", message)
  end
end

---@param pairs_held table[] {id, token}
---@param delay_s number
---@param each? fun(of: table) called for each job that was given back
---@param before? fun(of: table) called for each job before it is
---@param message? string why, as history tells it
---@return string[] answers
function M.all(pairs_held, delay_s, each, before, message)
  local answers = {}
  for i, pair in ipairs(pairs_held) do
    local of = job.read(pair[1])
    if not of then
      answers[i] = "NOTFOUND"
    elseif attempt.runs(of, pair[2]) then
      if before then
        before(of)
      end
      answers[i] = attempt.give_back(of, delay_s, message)
      if each then
        each(of)
      end
    else
      local how = attempt.ended_how(of, pair[2])
      answers[i] = how == job.TAKEN and "CANCELLED" or how ~= job.GIVEN_BACK and "LOST"
        or of[job.STATE] == states.SCHEDULED and "scheduled"
        or "queued"
    end
  end
  return answers
end

return M
