-- Parses and checks a job's spec.
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local jobs = require "jqlua.job.jobs"
local memory = require "jqlua.base.memory"
local states = require "jqlua.job.states"

local M = {}

-- Fields of parse's result, behind those of a job.
M.DELAY_MS = 19
M.RUN_AT_MS = 20
M.EXPIRES_IN_MS = 21
M.IS_TIMED = 22
M.IS_LINKED = 23 -- by a unique key or by dependencies
M.GIVEN_PRIORITY = 24
M.RECORD = 25 -- its encoded record if it waits in its queue's plain set, once made, or false

local MOST_TAGS = 32
local MOST_HEADERS = 16
local MOST_HEADER_BYTES = 1024 -- names and values of a job, together
M.MOST_DEPENDS = 10100 -- 10,000 parts of a flow, and what goes with them

-- Made from manifest/fields.py by `make generate`, as all between such marks. fields.py: names
local FIELDS = "name queue priority delay run_at expires_in max_retry max_lapses timeout max_runtime keep_result "
  .. "tags unique unique_for unique_within if_exists depends if_failed retry_base retry_cap retry_jitter "
  .. "track headers notify"
-- end of names

---@param least number
---@return string? problem
function M.check_tags(value, path, least)
  if not check.is_list(value, least, MOST_TAGS) then
    return check.problem(path, "a list of " .. least .. " to " .. MOST_TAGS .. " texts", value)
  end
  return check.distinct(value, path, check.is_name, check.NAME)
end

---@param i number how many jobs of the call may be named by index
---@return string? problem
function M.check_depends(value, path, i)
  if not check.is_list(value, 1, M.MOST_DEPENDS) then
    return check.problem(path, "a list of 1 to " .. M.MOST_DEPENDS .. " job ids or indexes", value)
  end
  return check.distinct(value, path, function(entry)
    return check.is_id(entry) or check.is_integer(entry, 0, i - 1)
  end, "a job id, or the index of an earlier job of this call")
end

---@return string? problem
local function check_headers(value, path)
  if type(value) ~= "table" then
    return check.problem(path, "a map of texts", value)
  end
  local count, bytes = 0, 0
  for name, text in pairs(value) do
    if not check.is_name(name) then
      return check.problem(path, "a map of texts, its keys each " .. check.NAME, name)
    elseif not check.is_text(text, MOST_HEADER_BYTES) then
      return check.problem(path, "for " .. check.show(name) .. " text, valid UTF-8, no control characters, at most "
        .. MOST_HEADER_BYTES .. " bytes", text)
    end
    count, bytes = count + 1, bytes + #name + #text
  end
  if count > MOST_HEADERS or bytes > MOST_HEADER_BYTES then
    return "INVALID " .. path .. ": expected at most " .. MOST_HEADERS .. " texts of " .. MOST_HEADER_BYTES
      .. " bytes in all, with their names; got " .. count .. " of " .. bytes
  end
end

-- fields.py: words
local CHOICES = { if_exists = "keep replace latest", if_failed = "wait fail run only" }
-- end of words

--- Checks a field that must be one of some words.
---@return string? problem
function M.check_choice(field, value, path)
  return arguments.check_choice(path, value, CHOICES[field])
end

--- Checks a rare field.
---@param options table to which it is added
---@param spec_path string
---@return string? expected what is wrong with the value
---@return string? problem the same as a complete error
local function rare(options, field, value, spec_path, i)
  local path = type(field) == "string" and spec_path .. "." .. field
  options[field] = value
  -- fields.py: checks
  if field == "max_lapses" then
    return not check.is_integer(value, 0, 2147483647) and "an integer from 0 to 2147483647"
  elseif field == "max_runtime" then
    return not check.is_number(value, 0.001, 4000000) and "seconds from 0.001 to 4000000"
  elseif field == "tags" then
    return nil, M.check_tags(value, path, 1)
  elseif field == "unique" then
    return not check.is_name(value) and check.NAME
  elseif field == "unique_for" or field == "unique_within" then
    return not check.is_number(value, 0.001, 1e10) and "seconds from 0.001 to 10^10"
  elseif field == "if_exists" or field == "if_failed" then
    return nil, M.check_choice(field, value, path)
  elseif field == "depends" then
    return nil, M.check_depends(value, path, i)
  elseif field == "retry_base" or field == "retry_cap" then
    return not check.is_number(value, 0, 1e10) and "seconds from 0 to 10^10"
  elseif field == "retry_jitter" then
    return not check.is_number(value, 0, 1) and "a number from 0 to 1"
  elseif field == "track" then
    options[field] = value or nil
    return type(value) ~= "boolean" and "true or false"
  elseif field == "headers" then
    options[field] = (type(value) ~= "table" or next(value)) and value or nil
    return nil, check_headers(value, path)
  elseif field == "notify" then
    return nil, not check.is_url(value) and check.problem_of_url(path, value) or nil
  end
  -- end of checks
  return nil, check.unknown(spec_path, field, FIELDS)
end

---@return string? problem
local function check_links(options, prefix)
  for _, field in ipairs({ "unique_for", "unique_within", "if_exists" }) do
    if options[field] ~= nil and options.unique == nil then
      return "INVALID " .. prefix .. field .. ": only valid with unique"
    end
  end
  if options.if_failed == "only" and not options.depends then
    return "INVALID " .. prefix .. "if_failed: 'only' needs depends: the job runs when one of these failed"
  end
  if options.unique_within and options.unique_for then
    return "INVALID " .. prefix .. "unique_within: expected either unique_for or unique_within, got both"
  elseif options.unique_within and options.if_exists == "latest" then
    return "INVALID " .. prefix .. "if_exists: expected keep or replace with unique_within"
  elseif options.if_exists == "latest" and options.depends then
    return "INVALID " .. prefix .. "depends: not valid with if_exists latest, which sets it"
  end
end

---@kept
-- Parsed specs, by their bytes.
local known = {}

---@param blob string MessagePack map
---@param i number its index, for errors
---@param list? string of which list, jobs
---@return table? new a job without an id, with the fields above behind a job's own. All jobs made of these bytes share
--- it: copy it to change more than the id
---@return string? problem
function M.parse(blob, i, list)
  local new = known[blob]
  if new then
    return new
  end
  local path = (list or "jobs") .. "[" .. i .. "]"
  local spec = check.map(blob)
  if not spec then
    return nil, check.not_a_map(path, blob)
  end
  local problem
  new, problem = M.read(spec, path, i)
  if not new or spec.depends then -- which may name earlier jobs of the call by index
    return new, problem
  end
  return memory.keep(known, blob, new)
end

---@param spec table
---@param path string of it, for errors
---@param i number how many jobs come before it in its call
---@return table? new
---@return string? problem
function M.read(spec, path, i)
  local prefix = path .. "."
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
      flags = value == true and jobs.KEEP_RESULT or 0
    elseif field == "timeout" then
      expected = not check.is_number(value, 0.001, 4000000) and "seconds from 0.001 to 4000000"
      timeout_ms = not expected and math.ceil(value * 1000)
    elseif field == "delay" then
      expected = not check.is_number(value, 0, 1e10) and "seconds from 0 to 10^10"
      delay_ms = not expected and math.ceil(value * 1000)
      if spec.run_at ~= nil then
        return nil, "INVALID " .. prefix .. "delay: expected either delay or run_at, got both"
      end
    elseif field == "run_at" then
      expected = not check.is_number(value, 0, 1e10) and "Unix seconds from 0 to 10^10"
      run_at_ms = not expected and math.ceil(value * 1000)
    elseif field == "expires_in" then
      expected = not check.is_number(value, 0.001, 1e10) and "seconds from 0.001 to 10^10"
      expires_in_ms = not expected and math.ceil(value * 1000)
    else
      local problem
      options = options or {}
      expected, problem = rare(options, field, value, path, i)
      if problem then
        return nil, problem
      end
    end
    if expected then
      return nil, check.problem(prefix .. field, expected, value)
    end
  end
  if not name then
    return nil, check.problem(prefix .. "name", check.NAME, nil)
  end
  if not queue then
    if string.find(name, "*", 1, true) then
      return nil, "INVALID " .. prefix .. "name: holds a *, so it cannot be the queue's name too: give a queue"
    end
    queue = name
  end
  local problem = options and check_links(options, prefix)
  if problem then
    return nil, problem
  end
  return {
    flags, states.QUEUED, jobs.NOT_YET, 0, 0, 0, 0, "", "", "", false, name, queue, priority, max_retry, timeout_ms,
    options and next(options) and cmsgpack.pack(options) or "", "",
    delay_ms, run_at_ms, expires_in_ms, delay_ms or run_at_ms or expires_in_ms,
    options and (options.unique or options.depends) and true or false, spec.priority or false,
    false,
  }
end

return M
