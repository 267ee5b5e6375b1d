-- Parses what a worker asks for in a pick, and checks what needs no reading.
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local ordering = require "jqlua.values.ordering"
local request = require "jqlua.life.request"
local workers = require "jqlua.workers.workers"

local M = {}

-- What few picks have; worker and queues are checked where they are read.
local FIELDS = {
  count = { "integer", 1, 1000 }, order = { "choice", words = "priority ordered" },
  without = { "list", 1, 100, of = "name", distinct = true }, request = { "token" }, wait = { "map" },
}
local QUEUES = { queues = {} }
local PICK = { worker = {}, queues = {} }
local FINISH = { worker = {}, pick = {} }
local WAIT = { on = { "text", 1, 64, required = true }, ms = { "ms", 1, 60000, required = true } }
M.QUEUES = '"*", a name, or a list of 1 to 100 names and patterns'

--- Parses the field `queues`; refuses the call if it is wrong.
---@return table[] entries {name} or {pattern}
function M.parse_queues(value, path)
  local list = type(value) == "string" and { value } or value
  check.refuse(not check.is_list(list, 1, 100) and check.problem(path, M.QUEUES, value))
  local entries = {}
  for i, text in ipairs(list) do
    check.refuse(not check.is_name(text)
      and check.problem(list == value and path .. "[" .. (i - 1) .. "]" or path, check.NAME, text))
    entries[i] = glob.is_pattern(text) and { pattern = text } or { name = text }
  end
  return entries
end

--- Refuses the call for a wrong field `wait`.
function M.check_wait(wait, path)
  fields.check(wait, WAIT, path)
  check.refuse(string.find(wait.on, "[^%w._-]")
    and check.problem(path .. ".on", "1 to 64 of A-Z a-z 0-9 . _ -", wait.on))
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

--- What a pick asks for; refuses the call if it is wrong.
---@param path string in front of fields in errors, "" or "pick."
---@param worker any who picks
---@return table wish {worker, queue: the only one, or entries and wanted: several; count, rounds: lists of entries,
--- from which jobs are taken one after the other; without: a set of names, request, wait, is_registered: by the form of
--- its name}, not to be changed
local function wish_of(spec, path, worker)
  for name, value in pairs(spec) do
    if name ~= "queues" and (name ~= "worker" or path ~= "") then
      fields.check_value(value, FIELDS[name]
        or fields.unknown(path:sub(1, -2), name, FIELDS, path == "" and PICK or QUEUES), path, name)
    end
  end
  check.refuse(not check.is_name(worker) and check.problem("worker", check.NAME, worker))
  local wish = {
    worker = worker, is_registered = workers.is_id(worker), path = path, queue = false,
    entries = M.parse_queues(spec.queues, path .. "queues"),
    wanted = type(spec.queues) == "string" and { spec.queues } or spec.queues, count = spec.count or 1,
    without = false, request = spec.request or false, wait = spec.wait or false,
  }
  wish.rounds = { wish.entries }
  for i, entry in ipairs(spec.order == "ordered" and wish.entries or {}) do
    wish.rounds[i] = { entry }
  end
  if spec.wait then
    M.check_wait(spec.wait, path .. "wait")
    local on = spec.wait.on
    check.refuse(on:sub(1, 2) == "q-" and on ~= channel_of(wish.wanted, spec.without)
      and check.problem(path .. "wait.on", channel_of(wish.wanted, spec.without) .. " for these names", on))
  end
  if spec.without then
    -- Then even one queue is searched like several.
    wish.without = {}
    for _, name in ipairs(spec.without) do
      wish.without[name] = true
    end
  elseif not wish.entries[2] and wish.entries[1].name then
    wish.queue = wish.entries[1].name
  end
  return wish
end

-- Parsed specs of picks.
local picks = KEPT

local function parse_pick(blob)
  local spec = check.map(blob)
  check.refuse(not spec and check.not_one_spec())
  return wish_of(spec, "", spec.worker)
end

--- What a pick asks for, from its only argument; refuses the call if it is wrong.
---@return table wish as of wish_of
---@return string|false token its request
function M.of_pick()
  check.refuse(#ARGV ~= 1 and check.not_one_spec())
  return request.read(picks, ARGV[1], parse_pick)
end

-- Parsed first arguments of finishes.
local finishes = KEPT

local function parse_finish(blob)
  local spec = check.map(blob)
  check.refuse(not spec and check.not_a_map("spec", blob))
  for name in pairs(spec) do
    if name ~= "worker" and name ~= "pick" then
      fields.unknown("", name, FINISH)
    end
  end
  local worker, pick = spec.worker, spec.pick
  if pick ~= nil then
    check.refuse(type(pick) ~= "table" and check.problem("pick", "a map", pick))
    return wish_of(pick, "pick.", worker)
  end
  check.refuse(not check.is_name(worker) and check.problem("worker", check.NAME, worker))
  return { worker = worker, is_registered = workers.is_id(worker), entries = false, request = false }
end

--- The first argument of a finish: what is to be picked next. Refuses the call if it is wrong.
---@return table wish as of wish_of; without entries if nothing is
---@return string|false token its request
function M.of_finish()
  check.refuse(not ARGV[1] and check.not_a_map("spec"))
  return request.read(finishes, ARGV[1], parse_finish)
end

return M
