-- Selects jobs by `where`: a map of conditions, all of which must hold.
local budget = require "jqlua.job.budget"
local fields = require "jqlua.base.fields"
local matcherspec = require "jqlua.limits.matcherspec"
local constraints = require "jqlua.limits.constraints"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local matcher = require "jqlua.limits.matcher"
local meta = require "jqlua.base.meta"
local msgpack = require "jqlua.base.msgpack"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local keys = require "jqlua.base.keys"

local M = {}

local FIELDS = {
  queue = { "name" }, name = { "name" }, tag = { "name" }, group = { "name" }, worker = { "name" },
  status = { "states" }, from_ms = { "number", 0, 2 ^ 53 }, to_ms = { "number", 0, 2 ^ 53 },
  slower_ms = { "number", 0, 2 ^ 53 }, message = { "text", 1, 1024 }, argument = { "text", 1, 1024 },
  match = { "map" },
}
local STATES = "one of queued, scheduled, blocked, running, retrying, done, error, cancelled, skipped, "
  .. "or a list of them"

--- The letters of the states that `status` names.
local function letters_of(status)
  local letters = {}
  check.refuse(type(status) ~= "string" and not check.is_list(status, 1, 9)
    and check.problem("where.status", STATES, status))
  for i, name in ipairs(type(status) == "string" and { status } or status) do
    letters[i] = states.of_name(name)
    check.refuse(not letters[i] and check.problem("where.status", STATES, status))
  end
  return table.concat(letters)
end

--- Checks the field `where`.
---@param value any nil: no conditions
---@return table where its fields, letters of the states allowed, and match compiled
function M.parse(value)
  local where = { letters = states.ALL }
  fields.check(value == nil and {} or value, FIELDS, "where")
  for field, wanted in pairs(value or {}) do
    where[field] = wanted
  end
  if where.status ~= nil then
    where.letters, where.status = letters_of(where.status), nil
  end
  if where.match then
    -- From the spec's bytes: of the decoded spec nil is missing.
    local _, spec = msgpack.read(ARGV[1], true)
    where.match = matcherspec.compile_value(spec and spec.where.match, "where.match")
  end
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
    end_ms = members.score(job)
  end
  return end_ms - job[jobs.STARTED_MS] > slower_ms
end

--- Whether the conditions on the argument hold.
local function holds_inside(where, job)
  local argument = redis.call("GET", keys.ARGUMENT .. job[jobs.ID]) or ""
  budget.pay(budget.of_argument(argument))
  if where.argument and not argument:find(where.argument, 1, true) then
    return false
  elseif not where.match then
    return true
  end
  where.weight = where.weight or matcher.weight(where.match)
  budget.pay(budget.CONDITION * where.weight)
  local facts = constraints.facts(job)
  facts.argument = argument
  return matcher.test(where.match, facts)
end

--- Whether a job is selected; its id was checked before.
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
