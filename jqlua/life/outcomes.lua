-- Outcomes that workers report: parses and applies them.
local check = require "jqlua.base.check"
local fields = require "jqlua.base.fields"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local attempts = require "jqlua.life.attempts"
local failure = require "jqlua.life.failure"
local continuation = require "jqlua.life.continuation"

local M = {}

local NEEDED = { id = { "job" }, token = { "lease" }, type = { "choice", words = "success failure" } }
local SUCCESS = { move = { "map" }, resume = { "map" }, enqueue = { "integer", 1, 1000 } }
local FAILURE = {
  reason = { "choice", words = "other timeout" }, should_retry = { "flag" }, retry_in = { "seconds", 0, 1e10 },
  message = { "message" }, group = { "name" },
}

--- Checks a field that few outcomes have: refuses the call if it is wrong.
---@param path string of the outcome, for errors
local function check_more(outcome, name, value, path)
  local field = SUCCESS[name] or FAILURE[name]
  if not field then
    fields.unknown(path, name, NEEDED, SUCCESS, FAILURE)
  end
  local only = SUCCESS[name] and "success" or "failure"
  check.refuse(outcome.type ~= only and "INVALID " .. path .. "." .. name .. ": only valid with type " .. only)
  fields.check_value(value, field, path .. ".", name)
  if name == "move" then
    continuation.check_move(value, path .. ".move")
  elseif name == "resume" then
    continuation.check_resume(outcome, path .. ".resume")
  elseif name == "message" then
    outcome.message = check.message(value, check.MOST_MESSAGE)
  end
end

-- As JQ's clients write a success: most outcomes are such, and to cut one up costs a third of unpacking it.
local USUAL = ">c5c14c7c14c13"
local USUAL_SIZE = 53

--- Parses an outcome; refuses the call if it is wrong.
---@param blob string MessagePack map
---@param more string its result or error
---@param i number its index, for errors
---@return table outcome with its blob
function M.parse(blob, more, i)
  if #blob == USUAL_SIZE and more ~= "" then
    local first, id, second, token, last = struct.unpack(USUAL, blob)
    if first == "\131\162id\174" and second == "\165token\174" and last == "\164type\167success"
      and check.is_token(token) then
      return { id = id, token = token, type = "success", blob = more }
    end
  end
  local outcome = check.map(blob)
  if not outcome or more == "" then
    check.refuse(not outcome and check.not_a_map("outcomes[" .. i .. "]", blob)
      or "INVALID outcomes[" .. i .. "].blob: expected one MessagePack value, got no bytes")
  end
  for name, value in pairs(outcome) do
    if name ~= "id" and name ~= "token" and name ~= "type" then
      check_more(outcome, name, value, "outcomes[" .. i .. "]")
    end
  end
  local id, kind = outcome.id, outcome.type
  -- Of an id only the length: it is looked at again if there is no such job.
  if type(id) ~= "string" or #id ~= 14 and #id ~= 16 or not check.is_token(outcome.token)
    or kind ~= "success" and kind ~= "failure" then
    for name, field in pairs(NEEDED) do
      fields.check_value(outcome[name], field, "outcomes[" .. i .. "].", name)
    end
  end
  outcome.blob = more
  return outcome
end

--- Applies an outcome, if the attempt still runs.
---@param job table?
---@return string|table answer state, or why not; with enqueue {state, id, created, ...}
function M.apply(job, outcome)
  if not job or not attempts.is_running(job, outcome.token) then
    return attempts.stale_answer(job, outcome.token, outcome.type == "failure" and jobs.FAILED
      or jobs.SUCCEEDED .. jobs.MOVED_ON .. jobs.WAITS .. (outcome.resume and jobs.FAILED or ""))
  end
  if outcome.resume then
    return continuation.resume(job, outcome)
  elseif outcome.type == "success" then
    local state = "done"
    if outcome.move then
      continuation.move(job, outcome)
      state = states.name(job[jobs.STATE])
    else
      attempts.succeed(job, outcome)
    end
    return outcome.jobs and continuation.enqueue(outcome, state) or state
  end
  return failure.fail(job, jobs.FAILED, outcome)
end

return M
