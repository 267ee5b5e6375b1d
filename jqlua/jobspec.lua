-- What a pusher says of a job, checked.
local check = require "jqlua.check"
local glob = require "jqlua.glob"
local job = require "jqlua.job"

local M = {}

-- Fields of what parse gives, behind those of a job.
M.DELAY_MS = 17
M.RUN_AT_MS = 18
M.EXPIRES_IN_MS = 19
M.IS_TIMED = 20

local MOST_TAGS = 32

local FIELDS = "name queue priority max_retry keep_result timeout delay run_at expires_in "
  .. "retry_base retry_cap retry_jitter tags"

---@cold
local function optional(options, name, value)
  options = options or {}
  options[name] = value
  return options
end

---@cold
---@return string? problem
local function check_tags(value, path)
  if not check.is_list(value, 1, MOST_TAGS) then
    return check.problem(path, "a list of 1 to " .. MOST_TAGS .. " texts", value)
  end
  local seen = {}
  for j, tag in ipairs(value) do
    local place = path .. "[" .. j - 1 .. "]"
    if not check.is_name(tag) then
      return check.problem(place, check.NAME, tag)
    elseif seen[tag] then
      return "INVALID " .. place .. ": the tag " .. check.show(tag) .. " is there already"
    end
    seen[tag] = true
  end
end

---@param blob string MessagePack map
---@param i number its place, for errors
---@return table? new a job that has no id and no state yet; behind its fields those below
---@return string? problem
function M.parse(blob, i)
  local spec = check.map(blob)
  if not spec then
    return nil, check.not_a_map("jobs[" .. i .. "]", blob)
  end
  local name, queue, options
  local flags, delay_ms, run_at_ms, expires_in_ms = 0, false, false, false
  local priority, max_retry, timeout_ms = 0, 10, 30000
  local expected
  for field, value in pairs(spec) do
    if field == "name" then
      expected = not check.is_name(value) and check.NAME
      name = value
    elseif field == "queue" then
      expected = (not check.is_name(value) or glob.is_pattern(value)) and check.NAME .. ", no *"
      queue = value
    elseif field == "priority" then
      expected = not check.is_integer(value, -2147483648, 2147483647)
        and "an integer from -2147483648 to 2147483647"
      priority = value
    elseif field == "max_retry" then
      expected = not check.is_integer(value, 0, 2147483647) and "an integer from 0 to 2147483647"
      max_retry = value
    elseif field == "keep_result" then
      expected = type(value) ~= "boolean" and "true or false"
      flags = value == true and job.KEEP_RESULT or 0
    elseif field == "timeout" then
      expected = not check.is_number(value, 0.001, 4000000) and "seconds from 0.001 to 4000000"
      timeout_ms = not expected and math.ceil(value * 1000)
    elseif field == "delay" then
      expected = not check.is_number(value, 0, 1e10) and "seconds from 0 to 10^10"
      delay_ms = not expected and math.ceil(value * 1000)
      if spec.run_at ~= nil then
        return nil, "INVALID jobs[" .. i .. "].delay: expected either delay or run_at, got both"
      end
    elseif field == "run_at" then
      expected = not check.is_number(value, 0, 1e10) and "Unix seconds from 0 to 10^10"
      run_at_ms = not expected and math.ceil(value * 1000)
    elseif field == "expires_in" then
      expected = not check.is_number(value, 0.001, 1e10) and "seconds from 0.001 to 10^10"
      expires_in_ms = not expected and math.ceil(value * 1000)
    elseif field == "retry_base" or field == "retry_cap" then
      expected = not check.is_number(value, 0, 1e10) and "seconds from 0 to 10^10"
      options = optional(options, field, value)
    elseif field == "tags" then
      local problem = check_tags(value, "jobs[" .. i .. "].tags")
      if problem then
        return nil, problem
      end
      options = optional(options, field, value)
    elseif field == "retry_jitter" then
      expected = not check.is_number(value, 0, 1) and "a number from 0 to 1"
      options = optional(options, field, value)
    else
      return nil, check.unknown("jobs[" .. i .. "]", field, FIELDS)
    end
    if expected then
      return nil, check.problem("jobs[" .. i .. "]." .. field, expected, value)
    end
  end
  if not name then
    return nil, check.problem("jobs[" .. i .. "].name", check.NAME, nil)
  end
  if not queue then
    if string.find(name, "*", 1, true) then
      return nil, "INVALID jobs[" .. i .. "].name: holds a *, so it cannot be the queue's name too: give a queue"
    end
    queue = name
  end
  return {
    flags, "", "-", 0, 0, 0, 0, name, queue, priority, max_retry, timeout_ms, options and cmsgpack.pack(options) or "",
    "", "", "",
    delay_ms, run_at_ms, expires_in_ms, delay_ms or run_at_ms or expires_in_ms,
  }
end

return M
