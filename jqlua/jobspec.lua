-- What a pusher says of a job, checked.
local check = require "jqlua.check"
local glob = require "jqlua.glob"
local meta = require "jqlua.meta"

local M = {}

local FIELDS = "name queue priority max_retry keep_result timeout delay run_at expires_in retry_base retry_cap retry_jitter"

local function optional(options, name, value)
  options = options or {}
  options[name] = value
  return options
end

---@param blob string MessagePack map
---@param path string of the map, for errors
---@return table? new {name, queue, priority, max_retry, keep_result, timeout_ms, options, due_ms?, expires_ms?}
---@return string? problem
function M.parse(blob, path)
  local spec = check.map(blob)
  if not spec then
    return nil, check.not_a_map(path, blob)
  end
  local now = meta.state.now_ms
  local name, queue, keep_result, due_ms, options, expires_ms
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
      keep_result = value
    elseif field == "timeout" then
      expected = not check.is_number(value, 0.001, 4000000) and "seconds from 0.001 to 4000000"
      timeout_ms = not expected and math.ceil(value * 1000)
    elseif field == "delay" then
      expected = not check.is_number(value, 0, 1e10) and "seconds from 0 to 10^10"
      due_ms = not expected and now + math.ceil(value * 1000)
      if spec.run_at ~= nil then
        return nil, "INVALID " .. path .. ".delay: expected either delay or run_at, got both"
      end
    elseif field == "run_at" then
      expected = not check.is_number(value, 0, 1e10) and "Unix seconds from 0 to 10^10"
      due_ms = not expected and math.ceil(value * 1000)
    elseif field == "expires_in" then
      expected = not check.is_number(value, 0.001, 1e10) and "seconds from 0.001 to 10^10"
      expires_ms = not expected and now + math.ceil(value * 1000)
      options = not expected and optional(options, "expires_ms", expires_ms)
    elseif field == "retry_base" or field == "retry_cap" then
      expected = not check.is_number(value, 0, 1e10) and "seconds from 0 to 10^10"
      options = optional(options, field, value)
    elseif field == "retry_jitter" then
      expected = not check.is_number(value, 0, 1) and "a number from 0 to 1"
      options = optional(options, field, value)
    else
      return nil, check.unknown(path, field, FIELDS)
    end
    if expected then
      return nil, check.problem(path .. "." .. field, expected, value)
    end
  end
  if not name then
    return nil, check.problem(path .. ".name", check.NAME, nil)
  end
  if not queue then
    if glob.is_pattern(name) then
      return nil, "INVALID " .. path .. ".name: holds a *, so it cannot be the queue's name too: give a queue"
    end
    queue = name
  end
  return {
    name = name, queue = queue, priority = priority, max_retry = max_retry, keep_result = keep_result,
    timeout_ms = timeout_ms, options = options and cmsgpack.pack(options) or "", due_ms = due_ms,
    expires_ms = expires_ms,
  }
end

return M
