-- A namespace of its own for each test, with a clock that the test sets.
local busted = require "busted"
local luassert = require "luassert"
local msgpack = require "support.msgpack"
local server = require "support.server"
local work = require "support.work"

local M = {}

-- JQ_NUMBER=7 runs specs in that partition of clusters.
local NUMBER = tonumber(os.getenv("JQ_NUMBER") or "")

local Space = {}
Space.__index = Space
for name, method in pairs(work) do
  Space[name] = method
end

M.START_MS = 1700000000000
M.TAIL = NUMBER and ("%02x"):format(NUMBER) or "" -- of ids
M.UNKNOWN_ID = "0000000000abcd" .. M.TAIL
M.UNKNOWN_WORKER = "w0000000000abcd" .. M.TAIL

local counter = 0
math.randomseed(os.time())
local run = string.format("%07x", math.random(0, 0xFFFFFFF))

---@param options? table {tag, setup: false to leave the namespace out, clock: "server" for the real scripts,
---  form: functions or scripts, where it must be one of them}
function M.new(options)
  options = options or {}
  counter = counter + 1
  local self = setmetatable({}, Space)
  self.connection = server.shared()
  self.name = "{" .. (options.tag or "t" .. run .. counter .. (NUMBER and ":" .. NUMBER .. "~0a/256" or "")) .. "}"
  self.scripts = options.clock or "settable"
  self.form = options.form
  self.tokens = {} -- of attempts that were seen to start, by id and number
  self:set_clock(M.START_MS)
  if options.setup ~= false then
    self:call("setup")
  end
  return self
end

--- For each test of a block its own, made before it and closed behind it.
---@return table jq which is that of the test that runs
function M.each(options)
  local current
  busted.before_each(function()
    current = M.new(options)
  end)
  busted.after_each(function()
    current:close()
  end)
  return setmetatable({}, {
    __index = function(_, name)
      return current[name]
    end,
    __newindex = function(_, name, value)
      current[name] = value
    end,
  })
end

--- The fields of a spec, changed by more of them.
function M.with(spec, more)
  for field, value in pairs(more or {}) do
    spec[field] = value
  end
  return spec
end

--- Ends a test: what is derived must agree with the records, and nothing may stay behind.
function Space:close()
  local found = {}
  if not self.is_corrupt and self:redis("EXISTS", self.name .. ":meta") == 1 then
    found = self:audit(true)
  end
  local keys = self:keys()
  if keys[1] then
    self.connection:call_list("DEL", keys)
  end
  luassert.are.same({}, found)
end

-- Clock ------------------------------------------------------------------------------------------------

function Space:set_clock(now_ms)
  self.now_ms = now_ms
  if self.scripts == "settable" then
    self:redis("SET", self.name .. ":clock", string.format("%.0f", now_ms))
  end
end

--- Lets seconds pass; they may be negative.
function Space:pass(seconds)
  self:set_clock(self.now_ms + seconds * 1000)
end

-- Calls ------------------------------------------------------------------------------------------------

function Space:redis(command, ...)
  return self.connection:call(command, ...)
end

--- Calls an operation: tables go as MessagePack, all else as it is. An error reply is raised as its text.
function Space:call(script, ...)
  return self:call_list(script, { ... })
end

function Space:call_list(script, arguments)
  local command, called = server.called(self.scripts, script, self.form)
  local sent = { called, 2, self.name, self.name .. ":meta" }
  for _, argument in ipairs(arguments) do
    sent[#sent + 1] = type(argument) == "table" and msgpack.pack(argument) or argument
  end
  return self.connection:call_list(command, sent)
end

--- The call must be refused with an error that begins so, and nothing may have changed.
---@return string message
function Space:refuses(expected, script, ...)
  return self:refuses_list(expected, script, { ... })
end

function Space:refuses_list(expected, script, arguments)
  local before = self:snapshot()
  local ok, message = pcall(self.call_list, self, script, arguments)
  luassert.is_false(ok, script .. " was not refused")
  luassert.are.equal(expected, type(message) == "string" and message:sub(1, #expected) or message)
  luassert.are.same({}, M.changes(before, self:snapshot()))
  return message
end

--- The call must change nothing.
---@return any reply
function Space:unchanged(what)
  local before = self:snapshot()
  local reply = what()
  luassert.are.same({}, M.changes(before, self:snapshot()))
  return reply
end

-- The operations, as short as tests want them ----------------------------------------------------------

---@param spec string|table
---@return string id
function Space:enqueue(spec, argument)
  spec = type(spec) == "string" and { name = spec } or spec
  return self:call("enqueue", spec, argument or msgpack.NIL)[1]
end

--- What an enqueue's reply names, created or not.
---@return string[] ids
function M.made(reply)
  local ids = {}
  for i = 1, #reply, 2 do
    ids[#ids + 1] = reply[i]
  end
  return ids
end

---@return string[] ids
function Space:enqueue_all(...)
  local arguments = {}
  for _, spec in ipairs({ ... }) do
    arguments[#arguments + 1] = type(spec) == "string" and { name = spec } or spec
    arguments[#arguments + 1] = msgpack.NIL
  end
  return M.made(self:call_list("enqueue", arguments))
end

--- So many jobs of one kind, in calls of 500.
---@return string[] ids
function Space:enqueue_many(spec, count, argument)
  local ids = {}
  while #ids < count do
    local arguments = {}
    for _ = 1, math.min(500, count - #ids) do
      arguments[#arguments + 1] = spec
      arguments[#arguments + 1] = argument or msgpack.NIL
    end
    for _, id in ipairs(M.made(self:call_list("enqueue", arguments))) do
      ids[#ids + 1] = id
    end
  end
  return ids
end

--- A pick's reply, decoded.
---@param place? number of its first part, behind the answers of a finish
---@return table[] jobs {id, token, name, ..., blob}, with next_ms
function M.picked(reply, place)
  place = place or 1
  local jobs = { next_ms = reply[place] }
  for i = place + 1, #reply, 2 do
    local job = msgpack.unpack(reply[i])
    job.blob = reply[i + 1]
    jobs[#jobs + 1] = job
  end
  return jobs
end

--- Remembers the tokens of jobs that were started.
function Space:note(jobs)
  for _, job in ipairs(jobs) do
    self.tokens[job.id .. " " .. job.attempt] = job.token
  end
  return jobs
end

--- The token of an attempt: of a job as it was picked, or of {id, attempt}; one that never was if it never started.
---@return string
function Space:token(job)
  return job.token or self.tokens[job.id .. " " .. job.attempt] or job.attempt .. "-000000000000"
end

--- As who has a job names it.
---@param job table|string as token takes it, or the id of one that was started once
---@return table {id, token}
function Space:held(job)
  job = type(job) == "string" and { id = job, attempt = 1 } or job
  return { job.id, self:token(job) }
end

---@param spec string|table queues, or a whole spec
function Space:pick(spec)
  if type(spec) == "string" or spec[1] then
    spec = { queues = spec }
  end
  spec.worker = spec.worker or "worker"
  return self:note(M.picked(self:call("pick", spec)))
end

--- The one job that is to be had.
function Space:take(spec)
  return (self:pick(spec)[1])
end

---@return string[] ids in the order they were picked
function Space:pick_ids(spec)
  return M.ids(self:pick(spec))
end

function M.ids(jobs)
  local ids = {}
  for i, job in ipairs(jobs) do
    ids[i] = job.id
  end
  return ids
end
Space.made, Space.ids, Space.with = M.made, M.ids, M.with

---@return string state
function Space:succeed(job, result, more)
  local outcome = M.with({ id = job.id, token = self:token(job), type = "success" }, more)
  return self:call("finish", { worker = "worker" }, outcome, result or msgpack.NIL)[1]
end

---@return string state
function Space:fail(job, more, blob)
  return self:succeed(job, blob, M.with({ type = "failure" }, more))
end

---@param delay? number seconds
---@param hold? table constraint id -> seconds
---@return string state
function Space:release(job, delay, hold)
  return self:call("release", {
    worker = "worker", jobs = { self:held(job) }, delay = delay, hold = hold,
  })[1]
end

function Space:heartbeat(job, worker)
  return self:call("heartbeat", { worker = worker or "worker", jobs = { self:held(job) } })[1]
end

function Space:cancel(id, force)
  return self:call("cancel", { ids = { id }, force = force })[1]
end

---@return table? document
function Space:get(id)
  local bytes = self:call("get", id)[1]
  return bytes and msgpack.unpack(bytes)
end

---@return string? status
function Space:status(id)
  local document = self:get(id)
  return document and document.status
end

---@return string[]
function Space:statuses(ids)
  local statuses = {}
  for i, id in ipairs(ids) do
    statuses[i] = self:status(id) or "gone"
  end
  return statuses
end

-- Cost -------------------------------------------------------------------------------------------------

--- How many commands Redis runs for what is called, those inside of scripts included.
---@return number
function Space:commands(what)
  self:redis("CONFIG", "RESETSTAT")
  what()
  local sum = 0
  for name, calls in self:redis("INFO", "commandstats"):gmatch("cmdstat_([^:]+):calls=(%d+)") do
    if name ~= "config|resetstat" and name ~= "info" then
      sum = sum + tonumber(calls)
    end
  end
  return sum
end

-- The whole namespace ----------------------------------------------------------------------------------

---@return string[] keys in order
function Space:keys()
  local keys, cursor = {}, "0"
  local pattern = self.name:gsub("[%*%?%[%]%^%\\]", "\\%0") .. ":*"
  repeat
    local page = self:redis("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
    cursor = page[1]
    for _, key in ipairs(page[2]) do
      keys[#keys + 1] = key
    end
  until cursor == "0"
  table.sort(keys)
  return keys
end

--- Everything the namespace holds, for a comparison.
function Space:snapshot()
  local held, keys, lists = {}, self:keys(), {}
  for i, key in ipairs(keys) do
    lists[i] = { key }
  end
  for i, bytes in ipairs(self.connection:call_each("DUMP", lists)) do
    held[keys[i]] = bytes
  end
  return held
end

--- Which keys differ between two snapshots.
---@return string[]
function M.changes(before, after)
  local changed = {}
  for key, value in pairs(before) do
    if after[key] ~= value then
      changed[#changed + 1] = (after[key] and "changed: " or "gone: ") .. key
    end
  end
  for key in pairs(after) do
    if not before[key] then
      changed[#changed + 1] = "new: " .. key
    end
  end
  table.sort(changed)
  return changed
end

---@param is_whole? boolean in steps that have no bound, which count all jobs less often
---@return string[] problems
function Space:audit(is_whole)
  local problems, spec = {}, { count = 1000 }
  repeat
    local reply = is_whole and self.connection:call("EVALSHA", server.whole_audit(), 2, self.name, self.name .. ":meta",
      msgpack.pack(spec)) or self:call("audit", spec)
    spec.cursor = reply[1]
    for i = 2, #reply do
      problems[#problems + 1] = reply[i]
    end
  until spec.cursor == ""
  return problems
end

return M
