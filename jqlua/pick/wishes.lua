-- Parses what a worker asks for in a pick, and checks what needs no reading.
local check = require "jqlua.base.check"
local fields = require "jqlua.base.fields"
local glob = require "jqlua.base.glob"
local ordering = require "jqlua.values.ordering"
local request = require "jqlua.life.request"
local workers = require "jqlua.workers.workers"

local M = {}

-- What few picks have: a script makes this table only for them. Worker and queues are checked where they are read.
local RARE = {
  count = { "integer", 1, 1000 }, order = { "choice", words = "priority ordered" },
  without = { "list", 1, 100, of = "name", distinct = true }, request = { "token" }, wait = { "map" },
}
local NEXT = { queues = {} }
local PICK = { worker = {}, queues = {} }
local FINISH = { worker = {}, pick = {} }
local WAIT = { on = { "text", 1, 64, required = true }, ms = { "ms", 1, 60000, required = true } }
local QUEUES = '"*", a name, or a list of 1 to 100 names and patterns'

--- Parses the field `queues`; refuses the call if it is wrong.
---@return string[] names and patterns
function M.parse_queues(value, path)
  local is_text = type(value) == "string"
  local list = is_text and { value } or value
  check.refuse(not is_text and not check.is_list(list, 1, 100) and check.problem(path, QUEUES, value))
  for i, text in ipairs(list) do
    check.refuse(not check.is_name(text)
      and check.problem(is_text and path or path .. "[" .. (i - 1) .. "]", check.NAME, text))
  end
  return list
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

--- Who finishes or picks; refuses the call for a name that is none.
local function wish_of_worker(worker)
  check.refuse(not check.is_name(worker) and check.problem("worker", check.NAME, worker))
  return { worker = worker, is_registered = workers.is_id(worker), queue = false, wanted = false, request = false }
end

--- What a pick asks for; refuses the call if it is wrong.
---@param path string in front of fields in errors, "" or "pick."
---@param worker any who picks
---@return table wish {worker, is_registered: by the form of its name, wanted: names and patterns of queues, queue: the
--- only one, or false; rounds: lists of them, from which jobs are taken one after the other; count, without: a set of
--- names or false, request, wait, path}, not to be changed
local function wish_of(spec, path, worker)
  for name, value in pairs(spec) do
    if name ~= "queues" and (name ~= "worker" or path ~= "") then
      fields.check_value(value, RARE[name]
        or fields.unknown(path:sub(1, -2), name, RARE, path == "" and PICK or NEXT), path, name)
    end
  end
  local wish = wish_of_worker(worker)
  local wanted = M.parse_queues(spec.queues, path .. "queues")
  wish.path, wish.wanted, wish.count, wish.rounds = path, wanted, spec.count or 1, { wanted }
  wish.request, wish.wait, wish.without = spec.request or false, spec.wait or false, false
  for i, text in ipairs(spec.order == "ordered" and wanted or {}) do
    wish.rounds[i] = { text }
  end
  if spec.wait then
    M.check_wait(spec.wait, path .. "wait")
    local on, channel = spec.wait.on, channel_of(wanted, spec.without)
    check.refuse(on:sub(1, 2) == "q-" and on ~= channel
      and check.problem(path .. "wait.on", channel .. " for these names", on))
  end
  if spec.without then
    -- Then even one queue is searched like several.
    wish.without = {}
    for _, name in ipairs(spec.without) do
      wish.without[name] = true
    end
  elseif not wanted[2] and not glob.is_pattern(wanted[1]) then
    wish.queue = wanted[1]
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
  if spec.pick == nil then
    return wish_of_worker(spec.worker)
  end
  check.refuse(type(spec.pick) ~= "table" and check.problem("pick", "a map", spec.pick))
  return wish_of(spec.pick, "pick.", spec.worker)
end

--- The first argument of a finish: what is to be picked next. Refuses the call if it is wrong.
---@return table wish as of wish_of; wanted is false if nothing is
---@return string|false token its request
function M.of_finish()
  check.refuse(not ARGV[1] and check.not_a_map("spec"))
  return request.read(finishes, ARGV[1], parse_finish)
end

return M
