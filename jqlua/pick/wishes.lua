-- Parses what a worker asks for in a pick, and checks what needs no reading.
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local memory = require "jqlua.base.memory"
local ordering = require "jqlua.values.ordering"
local request = require "jqlua.life.request"
local workers = require "jqlua.workers.workers"

local M = {}

local FIELDS = "worker queues count order without request wait"
local COUNT = "an integer from 1 to 1000"
local WITHOUT = { "list", 1, 100, of = "name", distinct = true }
M.QUEUES = '"*", a name, or a list of 1 to 100 names and patterns'

---@param value any the field `queues`
---@return table? entries {name} or {pattern}; has_patterns: whether one is a pattern other than *
---@return string? problem
function M.parse_queues(value, path)
  local list = value
  if type(value) == "string" then
    list = { value }
  elseif not check.is_list(value, 1, 100) then
    return nil, check.problem(path, M.QUEUES, value)
  end
  local entries = {}
  for i, text in ipairs(list) do
    if not check.is_name(text) then
      return nil, check.problem(list == value and path .. "[" .. (i - 1) .. "]" or path, check.NAME, text)
    end
    if glob.is_pattern(text) then
      entries[i] = { pattern = text }
      entries.has_patterns = entries.has_patterns or text ~= "*"
    else
      entries[i] = { name = text }
    end
  end
  return entries
end

---@param wait any the field `wait`
---@return string? problem
function M.check_wait(wait, path)
  if type(wait) ~= "table" then
    return check.problem(path, "a map with on and ms", wait)
  end
  for field in pairs(wait) do
    if field ~= "on" and field ~= "ms" then
      return check.unknown(path, field, "on ms")
    end
  end
  local on = wait.on
  if type(on) ~= "string" or #on == 0 or #on > 64 or string.find(on, "[^%w._-]") then
    return check.problem(path .. ".on", "1 to 64 of A-Z a-z 0-9 . _ -", on)
  end
  if not check.is_number(wait.ms, 1, 60000) then
    return check.problem(path .. ".ms", "milliseconds from 1 to 60000", wait.ms)
  end
end

--- The name of the channel of all, in any language, who want the same.
local function channel_of(wanted, without)
  local parts = {}
  for i, names in ipairs({ wanted, without }) do
    local sorted = { unpack(names) }
    table.sort(sorted, function(a, b)
      return ordering.compare("s" .. a, "s" .. b) < 0
    end)
    parts[i] = table.concat(sorted, "\n")
  end
  return "q-" .. redis.sha1hex(table.concat(parts, "\n\n")):sub(1, 16)
end

--- Names of jobs that the worker does not take. Then even one queue is searched like several.
local function parse_without(wish, names, path)
  fields.check_value(names, WITHOUT, path, "without")
  wish.without = {}
  for _, name in ipairs(names) do
    wish.without[name] = true
  end
end

--- The rarer fields.
---@return string? problem
local function parse_rare(wish, field, value, path, holder)
  if field == "order" then
    wish.order = value ~= "priority" and value
    return not (value == "priority" or value == "ordered" or value == "round_robin" or value == "shuffled")
      and check.problem(path .. field, "priority, ordered, round_robin or shuffled", value)
  elseif field == "request" then
    wish.request = value
    return not request.is_token(value) and check.problem(path .. field, request.TOKEN, value)
  elseif field == "without" then
    return parse_without(wish, value, path)
  elseif field == "wait" then
    wish.wait = value
    return M.check_wait(value, path .. field)
  end
  return check.unknown(path:sub(1, -2), field, holder and FIELDS:sub(8) or FIELDS)
end

--- Parses a pick's spec, and checks what needs no reading.
---@param spec table
---@param path string in front of fields in errors, "" or "pick."
---@param holder string? the worker, if given elsewhere
---@return table? wish {worker, queue: the only one, or entries and wanted: several; count, order, without: a
--- set of names, request, wait, is_registered: by the form of its name}, not to be changed
---@return string? problem
function M.parse(spec, path, holder)
  local wish = {
    worker = holder, queue = false, entries = false, wanted = false, count = 1, order = false, without = false,
    request = false, wait = false, path = path, is_registered = false,
  }
  for field, value in pairs(spec) do
    local problem
    if field == "worker" and not holder then
      problem = not check.is_name(value) and check.problem(path .. field, check.NAME, value)
      wish.worker = value
    elseif field == "queues" then
      wish.wanted = type(value) == "string" and { value } or value
      wish.entries, problem = M.parse_queues(value, path .. "queues")
    elseif field == "count" then
      problem = not check.is_integer(value, 1, 1000) and check.problem(path .. field, COUNT, value)
      wish.count = value
    else
      problem = parse_rare(wish, field, value, path, holder)
    end
    if problem then
      return nil, problem
    end
  end
  if not wish.worker then
    return nil, check.problem(path .. "worker", check.NAME, nil)
  elseif not wish.entries then
    return nil, check.problem(path .. "queues", M.QUEUES, nil)
  end
  local on = wish.wait and wish.wait.on
  if on and on:sub(1, 2) == "q-" and on ~= channel_of(wish.wanted, spec.without) then
    return nil, check.problem(path .. "wait.on", channel_of(wish.wanted, spec.without) .. " for these names", on)
  end
  wish.is_registered = workers.is_id(wish.worker)
  if not wish.entries[2] and wish.entries[1].name and not wish.without then
    wish.queue = wish.entries[1].name
  end
  return wish
end

---@kept
-- Parsed specs, by their bytes; if they end with a request, by the bytes before it.
local known = {}
---@kept
local known_with_token = {}

--- Like parse, from the bytes of a call's only argument.
---@return table? wish
---@return string? problem
---@return string|false|nil token its request
function M.read(blob)
  local rest, token, wishes
  if memory.LASTS and blob then
    rest, token = request.split(blob)
    wishes = token and known_with_token or known
    local wish = wishes[rest]
    if wish then
      return wish, nil, token or wish.request
    end
  end
  local spec = #ARGV == 1 and check.map(blob)
  if not spec then
    return nil, check.not_one_spec()
  end
  local wish, problem = M.parse(spec, "")
  if wish and wishes and (not token or token == wish.request) then
    memory.keep(wishes, rest, wish)
  end
  return wish, problem, wish and wish.request
end

return M
