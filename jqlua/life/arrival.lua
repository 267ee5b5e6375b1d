---@lazy
-- Jobs that come in one by one, because there is more to them than to be put into a set: unique keys, dependencies,
-- jobs that follow another, jobs of schedules.
local keys = require "jqlua.base.keys"
local batch = require "jqlua.base.writes"
local change = require "jqlua.life.change"
local check = require "jqlua.base.check"
local coming = require "jqlua.life.coming"
local dependents = require "jqlua.links.dependents"
local events = require "jqlua.statistics.events"
local job = require "jqlua.job.record"
local readers = require "jqlua.links.readers"
local states = require "jqlua.job.states"
local jobspec = require "jqlua.job.spec"
local queue = require "jqlua.queue.record"
local serial = require "jqlua.base.serial"
local transition = require "jqlua.life.transition"
local unique = require "jqlua.job.unique"

local M = {}

local call = redis.call

M.sequence = {} -- [1]: the last number given by this call

---@return number the last number given, or what counts as such by now
local function last_number()
  if not M.sequence[1] then
    M.sequence[1] = serial.read()
  end
  return M.sequence[1]
end

local function next_id()
  M.sequence[1] = last_number() + 1
  local id = string.format("%014x", M.sequence[1])
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.SEQ, id
  return id
end

--- Whether the queue takes another job that waits.
---@return boolean
function M.has_room(new)
  local owner = queue.load(new[job.QUEUE])
  local max = owner[queue.MAX_WAITING]
  if max == 0 then
    return true
  end
  batch.flush()
  return queue.waiting(owner) < max
end

--- Checks that what new jobs depend on was ever given as an id. Before any write.
---@param list string as errors name it
---@return string? problem
function M.check(jobs, list)
  local last = call("GET", keys.SEQ) or ""
  for i, new in ipairs(jobs) do
    for j, entry in ipairs(new[jobspec.IS_LINKED] and job.options(new).depends or {}) do
      if type(entry) == "string" and entry > last then
        return check.missing(list .. "[" .. i - 1 .. "].depends[" .. j - 1 .. "]", "job", entry)
      end
    end
  end
end

--- Who has the key already.
---@param options table of the new job; what it depends on may be added
---@return string? id of the job that stands for the new one
---@return boolean? is_next whether it comes after one that runs
local function met(new, options, argument)
  local id = unique.holder(options.unique)
  local of = id and job.read(id)
  local policy = options.if_exists or "keep"
  if not of then
    return id
  elseif policy ~= "keep" and states.is_of(of[job.STATE], states.WAITING) then
    batch.flush()
    change.replace(of, new, argument)
  elseif policy == "latest" and of[job.STATE] == states.RUNNING then
    options.depends, options.if_failed = { id }, "run"
    return nil, true
  end
  events.tell(of, "met")
  return id
end

--- Links a new job to those it has to wait for.
---@param made string[] ids of the jobs before it in its list
---@return boolean blocked
local function link(id, options, made)
  local is_blocked = false
  local others, known = {}, {}
  for _, entry in ipairs(options.depends) do
    local other_id = type(entry) == "number" and made[entry + 1] or entry
    if not known[other_id] then -- one may be named by id and by index
      known[other_id] = true
      others[#others + 1] = other_id
      local other = job.read(other_id)
      if dependents.waits_for(other, options.if_failed) then
        dependents.link(id, other)
        is_blocked = true
      end
    end
  end
  options.depends = others
  readers.enter(id, others)
  return is_blocked
end

--- Creates a job, unless its unique key is another's.
---@param given table as jobspec gives it
---@param argument string
---@param made? string[] ids of the jobs before it in its list
---@return string id
---@return number created 0 or 1
function M.create(given, argument, made)
  local new = { unpack(given) }
  local options = job.options(new)
  local is_next
  if options.unique then
    local id
    id, is_next = met(new, options, argument)
    if id then
      return id, 0
    end
  end
  options.if_exists = nil
  local owner = queue.load(new[job.QUEUE])
  local id = next_id()
  new[job.ID] = id
  local is_blocked = options.depends and link(id, options, made or {})
  new[job.OPTIONS] = next(options) and cmsgpack.pack(options) or ""
  local score = coming.place(new, owner, argument, is_blocked)
  if options.unique then
    unique.take(options.unique, id, is_next)
  end
  job.hold(new)
  job.save(new)
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.ARGUMENT .. id, argument
  transition.enter(owner, new, score)
  return id, 1
end

--- Creates jobs in their order.
---@param first number index in ARGV of the first argument; further ones are two behind each other
---@param reply table id, created, ... are appended to it
---@return table reply
function M.create_all(jobs, first, reply)
  local made, n = {}, #reply
  for i, new in ipairs(jobs) do
    local id, created = M.create(new, ARGV[first + 2 * i - 2], made)
    made[i] = id
    reply[n + 2 * i - 1], reply[n + 2 * i] = id, created
  end
  return reply
end

return M
