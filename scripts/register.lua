-- Registers a worker.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {name, queues, url?, max_jobs?, secrets?, key?}
-- Reply  worker id
-- Errors INVALID field, FULL queues
-- Flags: write
local apikey = require "jqlua.access.apikey"
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local check = require "jqlua.base.check"
local departure = require "jqlua.pick.departure"
local heads = require "jqlua.queue.heads"
local wishes = require "jqlua.pick.wish"
local serial = require "jqlua.base.serial"
local transition = require "jqlua.life.transition"
local worker = require "jqlua.pick.worker"

local MOST_JOBS = 1000
local URL = "an http or https URL of at most 2000 bytes, without user, ? and #"

local spec, problem = arguments.spec("name queues url max_jobs secrets key")
if not spec then
  return redis.error_reply(problem)
end
local url = spec.url
if not check.is_name(spec.name) then
  return redis.error_reply(check.problem("name", check.NAME, spec.name))
elseif url ~= nil and (not check.is_url(url) or url:find("?", 1, true)) then
  local shown = type(url) == "string" and worker.shown_url(url) or url
  return redis.error_reply(check.problem("url", URL, shown))
elseif spec.max_jobs ~= nil and not check.is_integer(spec.max_jobs, 1, MOST_JOBS) then
  return redis.error_reply(check.problem("max_jobs", "an integer from 1 to " .. MOST_JOBS, spec.max_jobs))
elseif spec.key ~= nil and not apikey.is_id(spec.key) then
  return redis.error_reply(check.problem("key", apikey.ID, spec.key))
end
problem = spec.secrets ~= nil and worker.check_secrets(spec.secrets)
if problem then
  return redis.error_reply(problem)
end
local entries
entries, problem = wishes.parse_queues(spec.queues, "queues")
problem = problem or heads.check_patterns(entries, "queues")
if problem then
  return redis.error_reply(problem)
end

local before = url and redis.call("HGET", keys.URLS, url)
if before then
  -- The same address is the same process, started again: what it held it does not know any more.
  departure.jobs_back(before)
  departure.forget(before)
end
-- From the same numbers as job ids, and for the same reasons.
local id = "w" .. serial.next()
local record = {
  n = spec.name, u = url, m = spec.max_jobs or 1, r = {}, s = spec.secrets and table.concat(spec.secrets, " "),
  a = spec.key, q = type(spec.queues) == "string" and { spec.queues } or spec.queues,
}
redis.call("ZADD", keys.WORKER_IDS, 0, id)
worker.seen(id)
if url then
  redis.call("HSET", keys.URLS, url, id)
  worker.join(id, record)
end
worker.save(id, record)
worker.place(id, record)
transition.commit()
return id
