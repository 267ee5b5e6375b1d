-- Which jobs are meant: a map of conditions, all of which must hold.
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local keys = require "jqlua.base.keys"

local M = {}

local FIELDS = "queue status name tag group from_ms to_ms message"
local STATES = "one of queued, scheduled, blocked, running, retrying, done, error, cancelled, or a list of them"
local LATEST_MS = 9007199254740992
local LONGEST_MESSAGE = 1024

--- Checks `status` and gives the letters of its states.
---@return string? letters nil when it is wrong
local function letters_of(status)
  if type(status) == "string" then
    return states.of_name(status)
  elseif not check.is_list(status, 1, 8) then
    return nil
  end
  local letters = ""
  for _, name in ipairs(status) do
    local of = states.of_name(name)
    if not of then
      return nil
    end
    letters = letters .. of
  end
  return letters
end

--- Checks the field `where`.
---@param value any nil is a where without conditions
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
    if field == "queue" or field == "name" or field == "tag" or field == "group" then
      expected = not check.is_name(wanted) and check.NAME
    elseif field == "status" then
      where.letters = letters_of(wanted)
      expected = not where.letters and STATES
    elseif field == "from_ms" or field == "to_ms" then
      expected = not check.is_number(wanted, 0, LATEST_MS) and "ms since 1970, from 0 to 2^53"
    elseif field == "message" then
      expected = (type(wanted) ~= "string" or wanted == "" or #wanted > LONGEST_MESSAGE)
        and "text of 1 to " .. LONGEST_MESSAGE .. " bytes"
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

--- Whether a job can be meant, as far as its id says.
function M.fits_id(where, id)
  local created_ms = job.created_ms(id)
  return created_ms >= (where.from_ms or 0) and (not where.to_ms or created_ms < where.to_ms)
end

local function has_tag(of, tag)
  for _, its_tag in ipairs(of[job.OPTIONS] ~= "" and job.options(of).tags or {}) do
    if its_tag == tag then
      return true
    end
  end
  return false
end

--- Whether a job is meant; its id was looked at.
---@param of table job
---@return boolean
function M.holds(where, of)
  if not where.letters:find(of[job.STATE], 1, true)
    or where.queue and of[job.QUEUE] ~= where.queue
    or where.name and of[job.NAME] ~= where.name
    or where.tag and not has_tag(of, where.tag) then
    return false
  elseif not where.group and not where.message then
    return true
  end
  local raw = redis.call("GET", keys.EXTRA .. of[job.ID]) or ""
  budget.pay(budget.of_bytes(raw))
  local extra = raw ~= "" and cmsgpack.unpack(raw) or {}
  return (not where.group or where.group == (extra.g or extra.r))
    and (not where.message or type(extra.m) == "string" and extra.m:find(where.message, 1, true) ~= nil)
end

return M
