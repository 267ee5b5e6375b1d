-- Checks derived data against the job records: each job in exactly the set of its state, nothing else in any set,
-- bounds no later than what they bound, held sets and pools as the records say.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local budget = require "jqlua.job.budget"
local audit_definitions = require "jqlua.upkeep.audit_definitions"
local audit_lanes = require "jqlua.upkeep.audit_lanes"
local audit_links = require "jqlua.upkeep.audit_links"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call
-- Of a larger set, the two ends are checked.
local MOST_MEMBERS = 300

local function report(problems, ...)
  problems[#problems + 1] = table.concat({ ... }, " ")
end

local function check_expiry(job, problems)
  local expires_ms = jobs.copy_options(job).expires_ms
  local score = call("ZSCORE", keys.EXPIRING .. job[jobs.QUEUE], job[jobs.ID])
  local is_waiting = states.is_of(job[jobs.STATE], states.WAITING) and job[jobs.ATTEMPT] == 0
  if is_waiting and expires_ms and tonumber(score or -1) ~= expires_ms then
    report(problems, "job", job[jobs.ID], "is missing among those that expire")
  elseif score and not (is_waiting and expires_ms) then
    report(problems, "job", job[jobs.ID], "stands among those that expire, but does not")
  end
end

local function check_job(id, problems)
  local job = jobs.read(id)
  if not job then
    return
  end
  budget.pay(budget.STEP + budget.of_job(job))
  local queue = queues.load(job[jobs.QUEUE])
  for letter in states.ALL:gmatch(".") do
    local score = call("ZSCORE", queues.key(queue, letter), id)
    if letter == job[jobs.STATE] and not score then
      report(problems, "job", id, "is missing in its set", letter)
    elseif letter ~= job[jobs.STATE] and score then
      report(problems, "job", id, "of state", job[jobs.STATE], "stands in set", letter)
    elseif score and (letter == states.QUEUED or letter == states.IN_LANE) and tonumber(score) ~= job[jobs.PRIORITY]
    then
      report(problems, "job", id, "has priority", job[jobs.PRIORITY], "and score", score)
    end
  end
  check_expiry(job, problems)
  audit_links.check_entries(job, problems)
  if job[jobs.STATE] == states.IN_LANE then
    audit_lanes.check_waiting(job, problems)
  elseif job[jobs.STATE] == states.QUEUED and job[jobs.UNITS] ~= "" then
    report(problems, "job", id, "has units and waits in no lane")
  end
  if (job[jobs.UNITS] ~= "") ~= jobs.has(job, jobs.LANED) then
    report(problems, "job", id, "has a wrong lane flag")
  end
  audit_links.check_job(job, problems)
  if call("EXISTS", keys.ARGUMENT .. id) == 0 then
    report(problems, "job", id, "has lost its argument")
  end
  if (call("EXISTS", keys.OUTCOME .. id) == 1) ~= jobs.has(job, jobs.HAS_OUTCOME) then
    report(problems, "job", id, "has a wrong outcome flag")
  end
  if (call("EXISTS", keys.EXTRA .. id) == 1) ~= jobs.has(job, jobs.HAS_EXTRA) then
    report(problems, "job", id, "has a wrong extra flag")
  end
  local is_held = jobs.has(job, jobs.HELD)
  if is_held and job[jobs.STATE] ~= states.RUNNING then
    report(problems, "job", id, "is held in state", job[jobs.STATE])
  elseif is_held and not call("ZSCORE", keys.HELD .. job[jobs.WORKER], id) then
    report(problems, "job", id, "is missing among those its worker holds")
  end
end

local function members(key)
  budget.pay(math.min(call("ZCARD", key), 2 * MOST_MEMBERS) * budget.LOOK)
  if call("ZCARD", key) <= 2 * MOST_MEMBERS then
    return call("ZRANGE", key, 0, -1)
  end
  local all = call("ZRANGE", key, 0, MOST_MEMBERS - 1)
  for _, member in ipairs(call("ZRANGE", key, -MOST_MEMBERS, -1)) do
    all[#all + 1] = member
  end
  return all
end

local function first_score(key)
  return tonumber(call("ZRANGE", key, 0, 0, "WITHSCORES")[2])
end

local function check_bound(problems, what, bound, actual)
  if actual and bound > actual then
    report(problems, what, "is noted as due at", bound, "but is due at", actual)
  end
end

local BOUND = { r = queues.DUE_RUNNING, s = queues.DUE_WAITING, t = queues.DUE_WAITING }

local function check_set(letter, name, problems)
  local queue = queues.load(name)
  local key = queues.key(queue, letter)
  for _, id in ipairs(members(key)) do
    local job = jobs.read(id)
    if not job then
      report(problems, "set", letter, "of queue", name, "holds", id, "which has no record")
    elseif job[jobs.STATE] ~= letter or job[jobs.QUEUE] ~= name then
      report(problems, "set", letter, "of queue", name, "holds", id, "of state", job[jobs.STATE], "and queue",
        job[jobs.QUEUE])
    end
  end
  if not call("ZSCORE", keys.QUEUE_NAMES, name) then
    report(problems, "queue", name, "has jobs and is missing among the names")
  end
  if queue[queues.IS_NEW] then
    report(problems, "queue", name, "has jobs and no record")
  end
  if letter == states.QUEUED and queues.is_listed(queue) then
    local first = call("ZRANGE", key, 0, 0, "WITHSCORES")
    local priority = tonumber(first[2])
    local bound = queue[queues.HEAD_PRIORITY]
    if bound > priority or (bound == priority and queue[queues.HEAD_ID] > first[1]) then
      report(problems, "queue", name, "has a better job than its bound says")
    end
  elseif BOUND[letter] then
    local bound, late_ms = queue[BOUND[letter]], 0
    if letter == states.RUNNING then
      -- A lapsed lease is handled after its grace; after a change of settings all leases are checked.
      late_ms = settings.at(settings.LEASE_GRACE, queue) * 1000
      bound = math.min(bound, tonumber(call("ZSCORE", keys.DUE, "E") or meta.NONE))
    end
    check_bound(problems, "set " .. letter .. " of queue " .. name, bound, (first_score(key) or meta.NONE) + late_ms)
  end
end

local function check_queue(name, problems)
  local queue = queues.load(name)
  for _, field in ipairs({ queues.DUE_RUNNING, queues.DUE_WAITING, queues.DUE_ENDED }) do
    if queue[field] ~= meta.NONE then
      local member = queues.due_member(queue, field)
      check_bound(problems, member, tonumber(call("ZSCORE", keys.DUE, member) or meta.NONE), queue[field])
    end
  end
  local is_own = call("EXISTS", keys.OWN_SETTINGS .. name) == 1
  if is_own ~= queues.has(queue, queues.OWN) or is_own and not meta.has(meta.HAS_OWN) then
    report(problems, "queue", name, "has a wrong flag of settings of its own")
  end
  local bound = queue[queues.HEAD_PRIORITY]
  if bound ~= meta.NONE
    and tonumber(call("ZSCORE", keys.HEADS .. "*", queue[queues.HEAD_ID] .. name) or meta.NONE) ~= bound then
    report(problems, "queue", name, "is not where it belongs in the index of queues")
  end
  if bound == meta.NONE and queues.is_listed(queue) and call("EXISTS", queues.key(queue, states.QUEUED)) == 1 then
    report(problems, "queue", name, "has jobs and no entry in the index of queues")
  end
end

local function check_heads(pattern, problems)
  for _, member in ipairs(members(keys.HEADS .. pattern)) do
    if queues.load(member:sub(15))[queues.HEAD_ID] ~= member:sub(1, 14) then
      report(problems, "index", pattern, "has a stray entry", member)
    end
  end
end

local function check_worker(id, problems)
  local record = workers.load(id)
  local held = call("ZRANGE", keys.HELD .. id, 0, -1)
  if not record and held[1] then
    report(problems, "worker", id, "is unknown and holds jobs")
  end
  for _, job_id in ipairs(held) do
    local job = jobs.read(job_id)
    if not job or job[jobs.STATE] ~= states.RUNNING or not jobs.has(job, jobs.HELD) or job[jobs.WORKER] ~= id then
      report(problems, "worker", id, "does not hold", job_id)
    end
  end
  if record and record.u then
    local has_room = #held < record.m and not record.k and not call("ZSCORE", keys.RESTING, id)
    if has_room ~= (call("ZSCORE", keys.POOL .. record.p, id) ~= false) then
      report(problems, "worker", id, "stands wrongly in its pool")
    end
  end
  for secret in string.gmatch(record and record.s or "", "[^ ]+") do
    if not check.is_secret(secret) then
      report(problems, "worker", id, "has a secret that is none")
    end
  end
end

local function check_expiring(name, problems)
  for _, id in ipairs(members(keys.EXPIRING .. name)) do
    if call("EXISTS", keys.JOB .. id) == 0 then
      report(problems, "queue", name, "expects", id, "to expire, which has no record")
    end
  end
  local bound = queues.load(name)[queues.DUE_WAITING]
  check_bound(problems, "expiry of queue " .. name, bound, first_score(keys.EXPIRING .. name))
end

local function check_starts(id, problems)
  if call("EXISTS", keys.KEY .. id) == 0 then
    report(problems, "starts of key", id, "are of no key")
  end
end

local function check_walk(name, problems)
  if not call("ZSCORE", keys.DUE, "v" .. name) then
    report(problems, "queue", name, "is to be looked through and nobody does")
  end
end

local function check_settings(name, problems)
  if queues.load(name)[queues.IS_NEW] then
    report(problems, "settings of queue", name, "are of no queue")
  end
end

local function check_queues(problems)
  for _, name in ipairs(members(keys.QUEUE_NAMES)) do
    check_queue(name, problems)
  end
end

--- By the part of a key before the colon; called with the part behind it.
local CHECKS = {
  j = check_job,
  y = check_expiring,
  lane = audit_lanes.check_lane,
  key = audit_lanes.check_key,
  limit = audit_lanes.check_limit,
  lanes = audit_lanes.check_index,
  starts = check_starts,
  walk = check_walk,
  ["waits-for"] = audit_links.check_waiting,
  dependents = audit_links.check_dependents,
  readers = audit_links.check_readers,
  unique = audit_links.check_unique,
  tagged = audit_links.check_tag,
  failed = audit_links.check_group,
  settings = check_settings,
  heads = check_heads,
  held = check_worker,
  ["worker-record"] = check_worker,
}

--- By a key's whole name.
local CHECKS_OF_ONE = {
  ["unique-kept"] = audit_links.check_kept,
  ["queue-names"] = check_queues,
}

--- Lists of names by their key, each with the prefix of the keys that it names.
local LISTS = {
  tags = { keys.TAGS, keys.TAGGED },
  ["tag-names"] = { keys.TAG_NAMES, keys.TAGGED },
  ["failed-groups"] = { keys.FAILED_GROUPS, keys.FAILED },
}

--- Checks one key by its name behind the namespace.
function M.key(name, problems)
  budget.pay(budget.STEP)
  local kind, rest = name:match("^([^:]+):(.*)$")
  if CHECKS[kind] then
    CHECKS[kind](rest, problems)
  elseif (kind == "o" or kind == "x" or kind == "a") and call("EXISTS", keys.JOB .. rest) == 0 then
    report(problems, "key", name, "has no job")
  elseif kind and #kind == 1 and states.is_of(kind, states.ALL) then
    check_set(kind, rest, problems)
  elseif CHECKS_OF_ONE[name] then
    CHECKS_OF_ONE[name](problems)
  elseif LISTS[name] then
    audit_links.check_names(LISTS[name][1], LISTS[name][2], problems)
  end
end

--- Checks meta, schedules, and keys.
function M.bounds(problems)
  audit_definitions.check(problems)
  check_bound(problems, "namespace", meta.state[meta.NEXT_DUE], first_score(keys.DUE))
  local noted = tonumber(call("ZSCORE", keys.DUE, "O") or meta.NONE)
  check_bound(problems, "keys that open", noted, first_score(keys.OPENING))
  if meta.state[meta.SLEEPERS] ~= call("HLEN", keys.SLEEPERS) then
    report(problems, "meta counts", meta.state[meta.SLEEPERS], "channels with sleepers")
  end
end

return M
