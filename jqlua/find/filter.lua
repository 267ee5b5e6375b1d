-- Selects jobs by `where`: a map of conditions, all of which must hold.
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local matcher = require "jqlua.limits.matcher"
local meta = require "jqlua.base.meta"
local msgpack = require "jqlua.values.msgpack"
local queues = require "jqlua.queue.queues"
local states = require "jqlua.job.states"
local keys = require "jqlua.base.keys"

local M = {}

local FIELDS = "queue status name tag group from_ms to_ms message worker slower_ms argument match"
local STATES = "one of queued, scheduled, blocked, running, retrying, done, error, cancelled, skipped, "
  .. "or a list of them"
local LATEST_MS = 9007199254740992
local LONGEST_TEXT = 1024

--- Checks `status` and returns the letters of its states.
---@return string? letters nil if invalid
local function letters_of(status)
  if type(status) == "string" then
    return states.of_name(status)
  elseif not check.is_list(status, 1, 9) then
    return nil
  end
  local letters = ""
  for _, name in ipairs(status) do
    local letter = states.of_name(name)
    if not letter then
      return nil
    end
    letters = letters .. letter
  end
  return letters
end

--- Compiles the condition `match`, from the spec's bytes: the decoded spec has large integers rounded.
---@param value any decoded
---@return table? program
---@return string? problem
local function program_of(value)
  local pos = type(value) == "table" and msgpack.find(ARGV[1], { "where", "match" })
  if not pos then
    return nil, check.problem("where.match", "a map of conditions, as of a constraint", value)
  end
  local program, problem = matcher.compile(msgpack.raw(ARGV[1], pos))
  return program, problem and problem:gsub("^INVALID match", "INVALID where.match", 1)
end

--- Checks the field `where`.
---@param value any nil: no conditions
---@return table? where its fields, and letters of the states allowed
---@return string? problem
function M.parse(value)
  if value == nil then
    value = {}
  elseif type(value) ~= "table" then
    return nil, check.problem("where", "a map of conditions", value)
  end
  local where = { letters = states.ALL }
  for field, wanted in pairs(value) do
    local expected
    if field == "queue" or field == "name" or field == "tag" or field == "group" or field == "worker" then
      expected = not check.is_name(wanted) and check.NAME
    elseif field == "status" then
      where.letters = letters_of(wanted)
      expected = not where.letters and STATES
    elseif field == "from_ms" or field == "to_ms" then
      expected = not check.is_number(wanted, 0, LATEST_MS) and "ms since 1970, from 0 to 2^53"
    elseif field == "slower_ms" then
      expected = not check.is_number(wanted, 0, LATEST_MS) and "ms, from 0 to 2^53"
    elseif field == "match" then
      local problem
      wanted, problem = program_of(wanted)
      if problem then
        return nil, problem
      end
    elseif field == "message" or field == "argument" then
      expected = (type(wanted) ~= "string" or wanted == "" or #wanted > LONGEST_TEXT)
        and "text of 1 to " .. LONGEST_TEXT .. " bytes"
    else
      return nil, check.unknown("where", field, FIELDS)
    end
    if expected then
      return nil, check.problem("where." .. field, expected, wanted)
    end
    where[field] = wanted
  end
  where.status = nil
  if where.group then
    where.letters = states.is_of(states.ERROR, where.letters) and states.ERROR or ""
  end
  return where
end

--- Whether a job may be selected, judging by its id.
function M.fits_id(where, id)
  local created_ms = jobs.created_ms(id)
  return created_ms >= (where.from_ms or 0) and (not where.to_ms or created_ms < where.to_ms)
end

local function has_tag(job, tag)
  for _, its_tag in ipairs(job[jobs.OPTIONS] ~= "" and jobs.copy_options(job).tags or {}) do
    if its_tag == tag then
      return true
    end
  end
  return false
end

--- Whether a job's last attempt ran for longer than this, until its end or until now.
local function is_slower(job, slower_ms)
  local state = job[jobs.STATE]
  if job[jobs.ATTEMPT] == 0 or states.is_of(state, states.WAITING) then
    return false
  end
  local end_ms = job[jobs.ENDED_MS]
  if state == states.RUNNING then
    end_ms = meta.state[meta.NOW_MS]
  elseif states.is_of(state, "ecn") then
    end_ms = tonumber(redis.call("ZSCORE", queues.key(queues.load(job[jobs.QUEUE]), state), job[jobs.ID]))
  end
  return end_ms - job[jobs.STARTED_MS] > slower_ms
end

--- Whether the conditions on the argument hold.
local function holds_inside(where, job)
  local argument = redis.call("GET", keys.ARGUMENT .. job[jobs.ID]) or ""
  budget.pay(budget.LOOK + budget.of_bytes(argument))
  if where.argument and not argument:find(where.argument, 1, true) then
    return false
  elseif not where.match then
    return true
  end
  where.weight = where.weight or matcher.weight(where.match)
  budget.pay(budget.CONDITION * where.weight)
  return matcher.test(where.match, {
    name = job[jobs.NAME], queue = job[jobs.QUEUE], priority = job[jobs.PRIORITY],
    tags = job[jobs.OPTIONS] ~= "" and jobs.copy_options(job).tags or {}, argument = argument,
  })
end

--- Whether a job is selected; its id was checked before.
---@param job table job
---@return boolean
function M.holds(where, job)
  if not where.letters:find(job[jobs.STATE], 1, true)
    or where.queue and job[jobs.QUEUE] ~= where.queue
    or where.name and job[jobs.NAME] ~= where.name
    or where.worker and (job[jobs.ATTEMPT] == 0 or job[jobs.WORKER] ~= where.worker)
    or where.tag and not has_tag(job, where.tag)
    or where.slower_ms and not is_slower(job, where.slower_ms)
    or (where.match or where.argument) and not holds_inside(where, job) then
    return false
  elseif not where.group and not where.message then
    return true
  end
  local raw = redis.call("GET", keys.EXTRA .. job[jobs.ID]) or ""
  budget.pay(budget.of_bytes(raw))
  local extra = raw ~= "" and cmsgpack.unpack(raw) or {}
  return (not where.group or where.group == (extra.g or extra.r))
    and (not where.message or type(extra.m) == "string" and extra.m:find(where.message, 1, true) ~= nil)
end

return M
