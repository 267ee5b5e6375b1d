-- Enqueues jobs, all of them or none.
-- KEYS   namespace, namespace:meta
-- ARGV   [options,] spec, argument, spec, argument, ...   1 to 1000 jobs; options {request}
-- Reply  {{id, created}, ...} in order
-- Errors INVALID jobs[i].field, FULL jobs[i].queue, CONFLICT request
-- Cost   for each job one SET, and its part of a ZADD; independent of what waits
-- Flags: write
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local index = require "jqlua.index"
local job = require "jqlua.job"
local jobspec = require "jqlua.jobspec"
local queue = require "jqlua.queue"
local request = require "jqlua.request"
local transition = require "jqlua.transition"

local MOST_JOBS = 1000

---@cold
local function parse_options(blob)
  local options = check.map(blob)
  if not options then
    return nil, check.not_a_map("options", blob)
  end
  for field in pairs(options) do
    if field ~= "request" then
      return nil, check.unknown("options", field, "request")
    end
  end
  if options.request ~= nil and not request.is_token(options.request) then
    return nil, check.problem("request", request.TOKEN, options.request)
  end
  return options.request
end

---@cold
local function digest()
  local digests = {}
  for i = 2, #ARGV do
    digests[#digests + 1] = redis.sha1hex(ARGV[i])
  end
  return redis.sha1hex(table.concat(digests))
end

---@cold
local function over_limit(owner, fresh, i)
  if queue.waiting(owner.name) + fresh > owner.max_waiting then
    return "FULL jobs[" .. i .. "].queue: " .. check.show(owner.name) .. " may hold max_waiting "
      .. owner.max_waiting .. " jobs that wait"
  end
end

local problem = meta.open()
if problem then
  return redis.error_reply(problem)
end
local first = 1
local token
if #ARGV % 2 == 1 then
  token, problem = parse_options(ARGV[1])
  if problem then
    return redis.error_reply(problem)
  end
  first = 2
end
local count = (#ARGV - first + 1) / 2
if count < 1 or count > MOST_JOBS then
  return redis.error_reply("INVALID jobs: expected 1 to " .. MOST_JOBS .. " specs, each with its argument, got " .. count)
end

local arguments_digest
if token then
  arguments_digest = digest()
  local remembered = request.recall("e", token)
  if remembered then
    if remembered.digest ~= arguments_digest then
      return redis.error_reply("CONFLICT request: this token was used with other arguments")
    end
    return remembered.reply
  end
end

local state = meta.state
local now = state.now_ms
local jobs = {}
local coming = {}
for i = 1, count do
  local new
  new, problem = jobspec.parse(ARGV[first], "jobs[" .. i - 1 .. "]")
  if problem then
    return redis.error_reply(problem)
  end
  new.argument = ARGV[first + 1]
  if new.argument == "" then
    return redis.error_reply("INVALID jobs[" .. i - 1 .. "].argument: expected one MessagePack value, got no bytes")
  end
  local owner = queue.load(new.queue)
  coming[owner] = (coming[owner] or 0) + 1
  if owner.max_waiting > 0 then
    problem = over_limit(owner, coming[owner], i - 1)
    if problem then
      return redis.error_reply(problem)
    end
  end
  new.owner = owner
  jobs[i] = new
  first = first + 2
end

-- Ids are 1024 a millisecond, but never behind the last: order of ids is order of enqueueing even if the clock
-- is set back, and they stay unique when a failover lost the last of them.
local seq = math.max(state.seq, now * 1024 - 1)
local reply = {}
for i = 1, count do
  local new = jobs[i]
  seq = seq + 1
  local id = string.format("%014x", seq)
  local to, score = "q", new.priority
  if new.due_ms and new.due_ms > now then
    to, score = "s", new.due_ms
  end
  redis.call("SET", keys.JOB .. id, job.encode(new, to))
  transition.enter(new.owner, id, to, score)
  if new.expires_ms then
    index.add(keys.EXPIRING .. new.owner.name, new.expires_ms, id)
    queue.note_due(new.owner, "w", new.expires_ms)
  end
  reply[i] = { id, 1 }
end
state.seq = seq
transition.commit()
if token then
  request.remember("e", token, { digest = arguments_digest, reply = reply })
end
return reply
