-- Outcomes that workers report: parses and applies them.
local check = require "jqlua.base.check"
local fields = require "jqlua.base.fields"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local attempts = require "jqlua.life.attempts"
local failure = require "jqlua.life.failure"
local transition = require "jqlua.life.transition"
local continuation = require "jqlua.life.continuation"

local M = {}

local MOST_MESSAGE = 65536 -- bytes
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
    outcome.message = check.message(value, MOST_MESSAGE)
  end
end

local function check_needed(outcome, i)
  for name, field in pairs(NEEDED) do
    fields.check_value(outcome[name], field, "outcomes[" .. i .. "].", name)
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
    if first == "\131\162id\174" and second == "\165token\174" and last == "\164type\167success" then
      return { id = id, token = token, type = "success", blob = more }
    end
  end
  local outcome = check.map(blob)
  if not outcome or more == "" then
    check.refuse(not outcome and check.not_a_map("outcomes[" .. i .. "]", blob)
      or "INVALID outcomes[" .. i .. "].blob: expected one MessagePack value, got no bytes")
  end
  local has_more = false
  for name, value in pairs(outcome) do
    if name ~= "id" and name ~= "token" and name ~= "type" then
      check_more(outcome, name, value, "outcomes[" .. i .. "]")
      has_more = true
    end
  end
  if type(outcome.id) ~= "string" or outcome.type ~= "success" and outcome.type ~= "failure" then
    check_needed(outcome, i)
  end
  outcome.blob, outcome.has_more = more, has_more
  return outcome
end

--- The job whose running attempt an outcome is of. What is of none is looked at closely: the call is refused if it is
--- wrong.
---@param raw string|false the job's record
---@param i number its index, for errors
---@return table|false job
local function find(outcome, raw, i)
  local job = jobs.from_record(outcome.id, raw)
  if job and attempts.is_running(job, outcome.token) then
    return job
  end
  check_needed(outcome, i)
  return false
end

--- Whether an outcome says only that the job succeeded, and with what.
local function is_bare(outcome)
  return outcome.type == "success" and not outcome.has_more
end

--- Finds the jobs whose running attempts outcomes are of. Successes of jobs that are alike become one: the first has
--- the results of all.
---@param parsed table[] outcomes
---@param raws (string|false)[] the jobs' records
---@param has_jobs boolean whether one of the outcomes brings jobs or waits for some: then a job may not end unnoticed
---@param answers table gets the answers of those that were joined to others
---@return (table|false)[] found
function M.find_all(parsed, raws, has_jobs, answers)
  local count, found, taken = #parsed, { nil }, {} -- taken: ids of which an outcome was found before
  local first, raw -- an outcome that others may be joined to, and the record of its job
  for n = 1, count do
    local outcome, id = parsed[n], parsed[n].id
    if raw and raw == raws[n] and outcome.token == first.token and is_bare(outcome) and not taken[id] then
      local results = first.results
      results[#results + 1], results[#results + 2] = id, outcome.blob
      taken[id], answers[n] = true, "done"
    else
      local job = find(outcome, raws[n], n - 1)
      found[n], raw = job and not taken[id] and job, nil
      if n < count and found[n] then
        taken[id] = true
        if not has_jobs and is_bare(outcome) and not transition.is_tied(job) then
          first, raw, outcome.results = outcome, raws[n], { id, outcome.blob }
        end
      end
    end
  end
  return found
end

--- Applies an outcome, if the attempt still runs: one before it in this call may have been of the same.
---@param job table|false as of find_all
---@return string|table answer state, or why not; with enqueue {state, id, created, ...}
function M.apply(job, outcome)
  if not job or job[jobs.STATE] ~= states.RUNNING then
    return attempts.stale_answer(jobs.read(outcome.id), outcome.token, outcome.type == "failure" and jobs.FAILED
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
      attempts.succeed(job, outcome.results or { outcome.id, outcome.blob })
    end
    return outcome.jobs and continuation.enqueue(outcome, state) or state
  end
  return failure.fail(job, jobs.FAILED, outcome)
end

return M
