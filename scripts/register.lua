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
-- @arg    announce  flag?                do not register, but list a worker that picks as `name`
-- @arg    running   list<job>? 0..100    with announce: the jobs that it runs
-- @reply  {worker_id: worker}           with announce its name
-- @errors INVALID field, FULL queues
-- @flags  write
-- @role   worker
-- @role   server with key
-- @over   register
-- @http   POST /worker
local apikeys = require "jqlua.access.apikeys"
local arguments = require "jqlua.base.arguments"
local fields = require "jqlua.base.fields"
local keys = require "jqlua.base.keys"
local check = require "jqlua.base.check"
local departure = require "jqlua.life.departure"
local patterns = require "jqlua.pick.patterns"
local wishes = require "jqlua.pick.wishes"
local serial = require "jqlua.base.serial"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local spec = arguments.spec(HEAD)
local url = spec.url
check.refuse(url and url:find("?", 1, true)
  and check.problem("url", check.URL .. ", and without ?", (url:gsub("%?.*", "?***"))))
check.refuse(spec.key and not apikeys.is_id(spec.key) and check.problem("key", apikeys.ID, spec.key))
check.refuse(spec.id and not workers.is_id(spec.id)
  and check.problem("id", "the id of a worker that is registered in another partition", spec.id))
check.refuse(not spec.announce and spec.running and "INVALID running: only a worker that announces itself has it")
if spec.announce then
  fields.refuse(spec, "url secrets key id", "a worker that announces itself has none")
  check.refuse(workers.is_id(spec.name)
    and check.problem("name", "a name that is no id of a registered worker", spec.name))
end
patterns.check(wishes.parse_queues(spec.queues, "queues"), "queues")

local record = {
  n = spec.name, u = url, m = spec.max_jobs or 1, s = spec.secrets and table.concat(spec.secrets, " "), a = spec.key,
  q = type(spec.queues) == "string" and { spec.queues } or spec.queues, h = spec.host, i = spec.pid, v = spec.version,
  j = spec.knows, r = spec.refused or {},
}
if spec.announce then
  workers.announce(record, spec.running)
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
workers.forget_listed(id)
redis.call("ZADD", keys.WORKER_IDS, 0, id)
if url then
  redis.call("HSET", keys.URLS, url, id)
  workers.join(id, record)
end
workers.save(id, record)
workers.seen(id)
workers.place(id, record)
transition.commit()
return id
