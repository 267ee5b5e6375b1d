-- Outcomes that workers report: parses and applies them.
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local attempts = require "jqlua.life.attempts"
local failure = require "jqlua.life.failure"
local continuation = require "jqlua.life.continuation"

local M = {}

local FIELDS = "id token type reason should_retry retry_in message group finished_at move resume enqueue"

local function is_iso8601(text)
  if type(text) ~= "string" or #text > 40 then
    return false
  end
  local date, rest = text:match("^(%d%d%d%d%-%d%d%-%d%d)[Tt ](.+)$")
  if not date then
    return false
  end
  local year, month, day = date:match("(%d+)-(%d+)-(%d+)")
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  local lengths = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
  if year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) then
    lengths[2] = 29
  end
  local hour, minute, second, zone = rest:match("^(%d%d):(%d%d):(%d%d)([^%d].*)$")
  if not hour then
    hour, minute, zone = rest:match("^(%d%d):(%d%d)([^%d].*)$")
    second = "0"
  end
  if not hour or month < 1 or month > 12 or day < 1 or day > lengths[month] or tonumber(hour) > 23
    or tonumber(minute) > 59 or tonumber(second) > 60 then
    return false
  end
  zone = zone:gsub("^[.,]%d+", "")
  local offset_hour, offset_minute = zone:match("^[+-](%d%d):?(%d%d)$")
  return zone == "Z" or zone == "z" or (offset_hour ~= nil and tonumber(offset_hour) < 24
    and tonumber(offset_minute) < 60)
end

--- Checks a field that only successes or only failures have.
---@param path string of the outcome, for errors
---@return string|false|nil expected what the value is not
---@return string? problem a complete error
local function check_more(outcome, field, value, path)
  if field == "move" or field == "resume" or field == "enqueue" then
    if outcome.type == "failure" then
      return nil, "INVALID " .. path .. "." .. field .. ": only valid with type success"
    elseif outcome.type ~= "success" then
      return nil, check.unknown(path, field, FIELDS)
    elseif field == "move" then
      return nil, continuation.check_move(value, path .. ".move")
    elseif field == "resume" then
      return nil, continuation.check_resume(outcome, path .. ".resume")
    end
    return not check.is_integer(value, 1, 1000) and "an integer from 1 to 1000"
  elseif field ~= "reason" and field ~= "should_retry" and field ~= "retry_in" and field ~= "message"
    and field ~= "group" then
    return nil, check.unknown(path, field, FIELDS)
  elseif outcome.type ~= "failure" then
    return nil, "INVALID " .. path .. "." .. field .. ": only valid with type failure"
  elseif field == "reason" then
    return value ~= "other" and value ~= "timeout" and '"other" or "timeout"'
  elseif field == "should_retry" then
    return type(value) ~= "boolean" and "true or false"
  elseif field == "retry_in" then
    return not check.is_number(value, 0, 1e10) and "seconds from 0 to 10^10"
  elseif field == "message" then
    outcome.message = type(value) == "string" and check.message(value, check.MOST_MESSAGE) or nil
    return not outcome.message and "text"
  end
  return not check.is_name(value) and check.NAME
end

---@param blob string MessagePack map
---@param i number its index, for errors
---@return table? outcome
---@return string? problem
function M.parse(blob, i)
  local outcome = check.map(blob)
  if not outcome then
    return nil, check.not_a_map("outcomes[" .. i .. "]", blob)
  end
  local expected
  for field, value in pairs(outcome) do
    if field == "id" then
      expected = not (type(value) == "string" and (#value == 14 or #value == 16)) and check.ID
    elseif field == "token" then
      expected = not check.is_token(value) and check.TOKEN
    elseif field == "attempt" then
      return nil, "INVALID outcomes[" .. i .. "].attempt: unknown field, did you mean token, which came with the job?"
    elseif field == "type" then
      expected = value ~= "success" and value ~= "failure" and '"success" or "failure"'
    elseif field == "finished_at" then
      expected = not is_iso8601(value) and "a time in ISO 8601 with offset or Z, such as 2026-01-31T12:00:00Z"
    else
      local problem
      expected, problem = check_more(outcome, field, value, "outcomes[" .. i .. "]")
      if problem then
        return nil, problem
      end
    end
    if expected then
      return nil, check.problem("outcomes[" .. i .. "]." .. field, expected, value)
    end
  end
  if not outcome.id then
    return nil, check.problem("outcomes[" .. i .. "].id", check.ID, nil)
  elseif not outcome.token then
    return nil, check.problem("outcomes[" .. i .. "].token", check.TOKEN, nil)
  elseif not outcome.type then
    return nil, check.problem("outcomes[" .. i .. "].type", '"success" or "failure"', nil)
  end
  return outcome
end

--- The answer to an outcome of an attempt that is not running.
---@return string answer
local function stale_answer(job, outcome)
  if not job then
    return "NOTFOUND"
  end
  local how = attempts.how_ended(job, outcome.token)
  if how == jobs.TAKEN then
    return "CANCELLED"
  elseif how == jobs.SUCCEEDED and outcome.type == "success" then
    return "done"
  elseif how == jobs.MOVED_ON and outcome.type == "success" then
    return job[jobs.STATE] == states.SCHEDULED and "scheduled" or "queued"
  elseif how == jobs.WAITS and outcome.type == "success" then
    local state = job[jobs.STATE]
    return (state == states.BLOCKED or state == states.SCHEDULED) and states.name(state) or "queued"
  elseif how == jobs.FAILED and (outcome.type == "failure" or outcome.resume) then
    return job[jobs.STATE] == states.ERROR and "error" or "retrying"
  end
  return "LOST"
end

--- Applies an outcome, if the attempt still runs.
---@param job table?
---@return string|table answer state, or why not; with enqueue {state, id, created, ...}
function M.apply(job, outcome, blob)
  if not job or not attempts.is_running(job, outcome.token) then
    return stale_answer(job, outcome)
  end
  if outcome.resume then
    return continuation.resume(job, outcome, blob)
  elseif outcome.type == "success" then
    local state = "done"
    if outcome.move then
      continuation.move(job, outcome, blob)
      state = states.name(job[jobs.STATE])
    else
      attempts.succeed(job, blob, outcome.finished_at)
    end
    return outcome.jobs and continuation.enqueue(outcome, state) or state
  end
  return failure.fail(job, jobs.FAILED, outcome, blob)
end

return M
