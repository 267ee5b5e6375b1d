-- Enqueues jobs, all of them or none.
-- KEYS   namespace, namespace:meta
-- ARGV   [options,] spec, argument, spec, argument, ...   1 to 1000 jobs; options {request}
-- Reply  {id, created, id, created, ...} in order
-- Errors INVALID jobs[i].field, FULL jobs[i].queue, CONFLICT request
-- Cost   for each job its part of one MSET and one ZADD; independent of what waits
-- Flags: write, function
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local arrival = require "jqlua.life.arrival"
local coming = require "jqlua.life.coming"
local job = require "jqlua.job.record"
local jobspec = require "jqlua.job.spec"
local lane = require "jqlua.limits.lane"
local lineup = require "jqlua.limits.placement"
local queue = require "jqlua.queue.record"
local request = require "jqlua.base.request"
local transition = require "jqlua.life.transition"

local MOST_JOBS = 1000
local first = 1
local token, problem
if #ARGV % 2 == 1 then
  token, problem = coming.parse_options(ARGV[1])
  if problem then
    return redis.error_reply(problem)
  end
  first = 2
end
local count = (#ARGV - first + 1) / 2
if count < 1 or count > MOST_JOBS then
  return redis.error_reply("INVALID jobs: expected 1 to " .. MOST_JOBS
    .. " specs, each with its argument, got " .. count)
end
local jobs = { false }
local names = { false }
local records = {}
local queues = 0
for i = 1, count do
  local new
  new, problem = jobspec.parse(ARGV[first + 2 * i - 2], i - 1)
  if problem then
    return redis.error_reply(problem)
  end
  if ARGV[first + 2 * i - 1] == "" then
    return redis.error_reply("INVALID jobs[" .. i - 1 .. "].argument: expected one MessagePack value, got no bytes")
  end
  local name = new[job.QUEUE]
  if name ~= names[1] and not records[name] then
    queues = queues + 1
    names[queues] = name
    if queues > 1 then
      records[name] = true
    end
  end
  jobs[i] = new
end

local raws
if queues == 1 then
  problem, raws = meta.open(keys.SEQ, keys.QUEUE .. names[1])
else
  for i = 1, queues do
    records[i] = keys.QUEUE .. names[i]
  end
  problem, raws = meta.open(keys.SEQ, unpack(records))
end
if problem then
  return redis.error_reply(problem)
end
local arguments_digest
if token then
  arguments_digest = coming.digest()
  local remembered = request.recall("e", token)
  if remembered then
    if remembered.digest ~= arguments_digest then
      return redis.error_reply("CONFLICT request: this token was used with other arguments")
    end
    return coming.flat(remembered.reply)
  end
end
local owners
local owner = queue.decode(names[1], raws[3])
if queues > 1 or owner[queue.MAX_WAITING] > 0 then
  owners, problem = coming.queues(names, raws, jobs)
  if problem then
    return redis.error_reply(problem)
  end
end

-- Ids are 1024 a millisecond, but never behind the last: order of ids is order of enqueueing even if the clock
-- is set back, and they stay unique when a failover lost the last of them.
local seq = math.max(tonumber(raws[2] or "0", 16), meta.state[meta.NOW_MS] * 1024 - 1)
local writes = { false, false, false, false, keys.SEQ, false }
local reply = { false, false }
local is_linked = false
for i = 1, count do
  is_linked = is_linked or jobs[i][jobspec.IS_LINKED]
end
if is_linked then
  problem = arrival.check(jobs, "jobs")
  if problem then
    return redis.error_reply(problem)
  end
  reply = arrival.create_all(jobs, first + 1, {})
  count = 0
end
for i = 1, count do
  local new = jobs[i]
  local id = string.format("%014x", seq + i)
  local to, score = "q", new[job.PRIORITY]
  owner = owners and owners[new[job.QUEUE]] or owner
  if new[jobspec.IS_TIMED] then
    to, score = coming.schedule(new, owner, id)
  end
  if new[job.NAME] ~= new[job.QUEUE] then
    queue.set(owner, queue.MIXED)
  end
  if owner[queue.VERSION] < meta.state[meta.ADDED] then
    lineup.is_settled(owner)
  end
  new[job.ID] = id
  if to == "q" and lineup.matters(new, owner) then
    to = lineup.place(new, owner, ARGV[first + 2 * i - 1])
  end
  new[job.STATE] = to
  local n = i == 1 and 0 or 4 * i - 2
  writes[n + 1], writes[n + 2] = keys.JOB .. id, job.encode(new)
  writes[n + 3], writes[n + 4] = keys.ARGUMENT .. id, ARGV[first + 2 * i - 1]
  if to == "w" then
    lane.join(owner, new)
  end
  transition.enter(owner, new, score)
  reply[2 * i - 1], reply[2 * i] = id, 1
  writes[6] = id
end
if count > 0 then
  redis.call("MSET", unpack(writes))
end
transition.commit()
if token then
  request.remember("e", token, { digest = arguments_digest, reply = reply })
end
return reply
