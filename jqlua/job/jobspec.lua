-- Parses and checks a job's spec.
local check = require "jqlua.base.check"
local fields = require "jqlua.base.fields"
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
M.IF_EXISTS = 26

local MOST_HEADERS = 16
local MOST_HEADER_BYTES = 1024 -- names and values of a job, together

-- Made from manifest/fields.py by `make generate`, as all between such marks: what each job has, and what stands in
-- the options of its record, where it is given. fields.py: fields
M.FIELDS = {
  ["name"] = { "name", required = true },
  ["queue"] = { "queue" },
  ["priority"] = { "integer", -2147483648, 2147483647 },
  ["delay"] = { "seconds", 0, 10000000000 },
  ["run_at"] = { "moment", 0, 10000000000 },
  ["expires_in"] = { "seconds", 0.001, 10000000000 },
  ["max_retry"] = { "integer", 0, 2147483647 },
  ["timeout"] = { "seconds", 0.001, 4000000 },
  ["keep_result"] = { "flag" },
}
M.OPTIONS = {
  ["max_lapses"] = { "integer", 0, 2147483647 },
  ["max_runtime"] = { "seconds", 0.001, 4000000 },
  ["tags"] = { "list", 1, 32, of = "name", distinct = true },
  ["unique"] = { "name" },
  ["unique_for"] = { "seconds", 0.001, 10000000000 },
  ["unique_within"] = { "seconds", 0.001, 10000000000 },
  ["if_exists"] = { "choice", words = "keep replace latest" },
  ["depends"] = { "list", 1, 10100, of = "reference", distinct = true },
  ["if_failed"] = { "choice", words = "wait fail run only" },
  ["retry_base"] = { "seconds", 0, 10000000000 },
  ["retry_cap"] = { "seconds", 0, 10000000000 },
  ["retry_jitter"] = { "number", 0, 1 },
  ["track"] = { "flag" },
  ["headers"] = { "map", nil, 16, of = "text" },
  ["notify"] = { "url", nil, 2000 },
}
-- end of fields

--- Checks indexes in the field `depends`.
---@param path string in front of the field's name
---@param i number how many jobs of the call may be named by index
function M.check_depends(value, path, i)
  for j, entry in ipairs(value) do
    check.refuse(type(entry) == "number" and entry >= i and check.problem(path .. "depends[" .. j - 1 .. "]",
      "a job id, or the index of an earlier job of this call", entry))
  end
end

local function check_headers(value, path)
  local count, bytes = 0, 0
  for name, text in pairs(value) do
    check.refuse(not check.is_name(name)
      and check.problem(path, "a map of texts, its keys each " .. check.NAME, name))
    check.refuse(not check.is_text(text, MOST_HEADER_BYTES) and check.problem(path, "for " .. check.show(name)
      .. " text, valid UTF-8, no control characters, at most " .. MOST_HEADER_BYTES .. " bytes", text))
    count, bytes = count + 1, bytes + #name + #text
  end
  check.refuse((count > MOST_HEADERS or bytes > MOST_HEADER_BYTES)
    and "INVALID " .. path .. ": expected at most " .. MOST_HEADERS .. " texts of " .. MOST_HEADER_BYTES
    .. " bytes in all, with their names; got " .. count .. " of " .. bytes)
end

-- Only an error needs the path of a spec, which costs much to make.
local function path_of(i, list)
  return list and list .. "[" .. i .. "]" or "job"
end

--- Checks fields that depend on one another.
---@return string? problem with its field in front
local function check_options(spec, i, list)
  if not spec.unique and (spec.unique_for or spec.unique_within or spec.if_exists) then
    return (spec.unique_for and "unique_for" or spec.unique_within and "unique_within" or "if_exists")
      .. ": only valid with unique"
  end
  if spec.depends then
    M.check_depends(spec.depends, path_of(i, list) .. ".", i)
  end
  if spec.headers then
    check_headers(spec.headers, path_of(i, list) .. ".headers")
  end
  if spec.if_failed == "only" and not spec.depends then
    return "if_failed: 'only' needs depends: the job runs when one of these failed"
  end
  if spec.unique_within and spec.unique_for then
    return "unique_within: expected either unique_for or unique_within, got both"
  elseif spec.unique_within and spec.if_exists == "latest" then
    return "if_exists: expected keep or replace with unique_within"
  elseif spec.if_exists == "latest" and spec.depends then
    return "depends: not valid with if_exists latest, which sets it"
  end
end

--- Checks a field.
---@return boolean is_option
local function check_field(name, value, i, list)
  local field, option = M.FIELDS[name], nil
  if not field then
    option = M.OPTIONS[name]
    field = option or fields.unknown(path_of(i, list), name, M.FIELDS, M.OPTIONS)
  end
  if field.of or not fields.is_valid(value, field) then
    fields.check_value(value, field, path_of(i, list) .. ".", name)
  end
  return option ~= nil
end

--- Checks a job's spec: refuses the call for what is wrong.
---@param i number how many jobs come before it in its call
---@param list? string path of its list, for errors; without, it is `job`
---@return boolean has_options
function M.check(spec, i, list)
  local has_options = false
  for name, value in pairs(spec) do
    -- Often there is nothing else.
    if name ~= "name" or not check.is_name(value) then
      has_options = check_field(name, value, i, list) or has_options
    end
  end
  local problem
  if not spec.name then
    check.refuse(check.problem(path_of(i, list) .. ".name", check.NAME, nil))
  elseif not spec.queue and string.find(spec.name, "*", 1, true) then
    problem = "name: holds a *, so it cannot be the queue's name too: give a queue"
  elseif spec.delay and spec.run_at then
    problem = "delay: expected either delay or run_at, got both"
  elseif has_options then
    problem = check_options(spec, i, list)
  end
  check.refuse(problem and "INVALID " .. path_of(i, list) .. "." .. problem)
  return has_options
end

--- The options of a spec, packed.
local function options_of(spec)
  local options = {}
  for name, value in pairs(spec) do
    if not M.FIELDS[name] and name ~= "if_exists" and value ~= false and (name ~= "headers" or next(value)) then
      options[name] = value
    end
  end
  return next(options) and cmsgpack.pack(options) or ""
end

--- The job that a checked spec describes.
---@param has_options boolean whether it may have any
---@return table new
function M.new(spec, has_options)
  local ceil = math.ceil
  local delay_ms = spec.delay and ceil(spec.delay * 1000) or false
  local run_at_ms = spec.run_at and ceil(spec.run_at * 1000) or false
  local expires_in_ms = spec.expires_in and ceil(spec.expires_in * 1000) or false
  return {
    spec.keep_result and jobs.KEEP_RESULT or 0, states.QUEUED, jobs.NOT_YET, 0, 0, 0, 0, "", "", false, "", spec.name,
    spec.queue or spec.name, spec.priority or 0, spec.max_retry or 10,
    spec.timeout and ceil(spec.timeout * 1000) or 30000, has_options and options_of(spec) or "", "",
    delay_ms, run_at_ms, expires_in_ms, delay_ms or run_at_ms or expires_in_ms,
    (spec.unique or spec.depends) and true or false, spec.priority or false, false, spec.if_exists or "keep",
  }
end

-- Parsed specs, by their bytes.
local known = KEPT

--- Parses a job's spec; refuses the call if it is wrong.
---@param blob string MessagePack map
---@param i number its index, for errors
---@param list string path of its list
---@return table new read-only
function M.parse(blob, i, list)
  local new = known[blob]
  if new then
    return new
  end
  local spec = check.map(blob)
  check.refuse(not spec and check.not_a_map(path_of(i, list), blob))
  new = M.new(spec, M.check(spec, i, list))
  if spec.depends then -- which may name earlier jobs of the call by index
    return new
  end
  return memory.keep(known, blob, new)
end

return M
