-- Registers a worker; or lists one that picks under its own name, until it is silent for three minutes.
--
-- @arg    name      name
-- @arg    queues    list<queue> 1..100   names and patterns; a text is a list of one
-- @arg    url       url? 0..2000         where jobs are pushed to, without user, `?` and `#`; default: the worker picks
-- @arg    max_jobs  integer? 1..1000 = 1 how many it runs at once
-- @arg    secrets   list<secret>? 1..2   what is pushed to it is signed with each
-- @arg    key       text?                the key of the HTTP API that it was registered with
-- @arg    host      name?                where it runs; host, pid, version and knows are for people to see
-- @arg    pid       integer? 0..4294967295
-- @arg    version   name?
-- @arg    knows     list<name>? 0..100   names of jobs
-- @arg    refused   list<name>? 0..100   names of jobs that it does not take
-- @arg    id        worker?              of a worker that is registered in another partition already
-- @arg    announce  flag?                not registered: a worker that picks as `name` is listed from now on
-- @arg    running   list<job>? 0..100    with announce: the jobs that it runs
-- @reply  {worker_id: worker}           with announce its name
-- @errors INVALID field, FULL queues
-- @flags  write
-- @role   worker
-- @role   server with key
-- @over   register
-- @http   POST /worker (name, queues, url, max_jobs, secrets, host, pid, version, knows, refused, announce,
--         running) 201
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local check = require "jqlua.base.check"
local departure = require "jqlua.pick.departure"
local unregistered = require "jqlua.pick.unregistered"
local patterns = require "jqlua.pick.patterns"
local wishes = require "jqlua.pick.wishes"
local serial = require "jqlua.base.serial"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.pick.workers"

local MOST_JOBS = 1000
local MOST_NAMES = 100
local MOST_PID = 2 ^ 32 - 1
local URL = "an http or https URL of at most 2000 bytes, without user, ? and #"

local spec = arguments.spec(
  "name queues url max_jobs secrets key host pid version knows refused id announce running")
local url = spec.url

--- Checks what the worker says of itself.
local function check_about()
  for _, field in ipairs({ "host", "version" }) do
    if spec[field] ~= nil and not check.is_name(spec[field]) then
      return check.problem(field, check.NAME, spec[field])
    end
  end
  if spec.pid ~= nil and not check.is_integer(spec.pid, 0, MOST_PID) then
    return check.problem("pid", "an integer from 0 to 4294967295", spec.pid)
  end
  for _, field in ipairs({ "knows", "refused" }) do
    local names = spec[field]
    if names ~= nil and not check.is_list(names, 0, MOST_NAMES) then
      return check.problem(field, "a list of at most " .. MOST_NAMES .. " names of jobs", names)
    end
    for i, name in ipairs(names or {}) do
      if not check.is_name(name) then
        return check.problem(field .. "[" .. i - 1 .. "]", check.NAME, name)
      end
    end
  end
end

local function check_announced()
  if spec.announce ~= nil and type(spec.announce) ~= "boolean" then
    return check.problem("announce", "true or false", spec.announce)
  elseif not spec.announce then
    return spec.running ~= nil and "INVALID running: only a worker that announces itself has it" or nil
  end
  for _, field in ipairs({ "url", "secrets", "key", "id" }) do
    if spec[field] ~= nil then
      return "INVALID " .. field .. ": a worker that announces itself has none"
    end
  end
  if workers.is_id(spec.name) then
    return check.problem("name", "a name that is no id of a registered worker", spec.name)
  elseif spec.running == nil then
    return nil
  elseif not check.is_list(spec.running, 0, MOST_NAMES) then
    return check.problem("running", "a list of at most " .. MOST_NAMES .. " job ids", spec.running)
  end
  for i, id in ipairs(spec.running) do
    if not check.is_id(id) then
      return check.problem("running[" .. i - 1 .. "]", check.ID, id)
    end
  end
end

if not check.is_name(spec.name) then
  return redis.error_reply(check.problem("name", check.NAME, spec.name))
elseif url ~= nil and (not check.is_url(url) or url:find("?", 1, true)) then
  local shown = type(url) == "string" and workers.shown_url(url) or url
  return redis.error_reply(check.problem("url", URL, shown))
elseif spec.max_jobs ~= nil and not check.is_integer(spec.max_jobs, 1, MOST_JOBS) then
  return redis.error_reply(check.problem("max_jobs", "an integer from 1 to " .. MOST_JOBS, spec.max_jobs))
elseif spec.key ~= nil and not apikeys.is_id(spec.key) then
  return redis.error_reply(check.problem("key", apikeys.ID, spec.key))
end
if spec.id ~= nil and not workers.is_id(spec.id) then
  return redis.error_reply(check.problem("id", "the id of a worker that is registered in another partition", spec.id))
end
check.refuse(spec.secrets ~= nil and workers.check_secrets(spec.secrets) or check_about() or check_announced())
local entries, problem
entries, problem = wishes.parse_queues(spec.queues, "queues")
check.refuse(problem or patterns.check(entries, "queues"))

local record = {
  n = spec.name, u = url, m = spec.max_jobs or 1, s = spec.secrets and table.concat(spec.secrets, " "), a = spec.key,
  q = type(spec.queues) == "string" and { spec.queues } or spec.queues, h = spec.host, i = spec.pid, v = spec.version,
  j = spec.knows,
}
if spec.announce then
  record.f = spec.refused
  unregistered.announce(record, spec.running)
  transition.commit()
  return spec.name
end
local before = url and redis.call("HGET", keys.URLS, url)
if before then
  -- The same address is the same process, restarted: it has lost the jobs that it held.
  departure.jobs_back(before)
  departure.forget(before)
end
-- From the same serial numbers as job ids, for the same reasons.
local id = spec.id or "w" .. serial.next()
record.r = spec.refused or {}
redis.call("ZADD", keys.WORKER_IDS, 0, id)
workers.seen(id)
if url then
  redis.call("HSET", keys.URLS, url, id)
  workers.join(id, record)
end
workers.save(id, record)
workers.place(id, record)
transition.commit()
return id
