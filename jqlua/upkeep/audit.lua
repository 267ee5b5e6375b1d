-- Checks derived data against the job records: each job in exactly the set of its state, nothing else in any set,
-- bounds no later than what they bound, held sets and pools as the records say.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local due = require "jqlua.base.due"
local budget = require "jqlua.job.budget"
local findings = require "jqlua.upkeep.findings"
local audit_definitions = require "jqlua.upkeep.audit_definitions"
local audit_lanes = require "jqlua.upkeep.audit_lanes"
local audit_links = require "jqlua.upkeep.audit_links"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call
local expect = findings.expect

local function check_expiry(job)
  local id, expires_ms = job[jobs.ID], jobs.copy_options(job).expires_ms
  local score = call("ZSCORE", keys.EXPIRING .. job[jobs.QUEUE], id)
  local does_expire = states.is_of(job[jobs.STATE], states.WAITING) and job[jobs.ATTEMPT] == 0 and expires_ms
  expect(not does_expire or tonumber(score or -1) == expires_ms, "job", id, "is missing among those that expire")
  expect(does_expire or not score, "job", id, "stands among those that expire, but does not")
end

local function check_job(id)
  local job = jobs.read(id)
  if not job then
    return
  end
  budget.pay(budget.STEP + budget.of_job(job))
  local queue, state = queues.load(job[jobs.QUEUE]), job[jobs.STATE]
  for letter in states.SETS:gmatch(".") do
    if letter ~= states.set_of(state) then
      expect(not call("ZSCORE", queues.key(queue, letter), id), "job", id, "of state", state, "stands in set", letter)
    end
  end
  local score, base, top = members.score(job), states.band(state)
  if not score then
    expect(false, "job", id, "is missing in its set", state)
  elseif state == states.QUEUED or state == states.IN_LANE then
    expect(score == job[jobs.PRIORITY], "job", id, "has priority", job[jobs.PRIORITY], "and score", score)
  else
    expect(score >= 0 and score < top - base, "job", id, "of state", state, "stands in another's band")
  end
  check_expiry(job)
  audit_links.check_entries(job)
  audit_links.check_job(job)
  if state == states.IN_LANE then
    audit_lanes.check_waiting(job)
  end
  expect(state ~= states.QUEUED or job[jobs.UNITS] == "", "job", id, "has units and waits in no lane")
  expect((job[jobs.UNITS] ~= "") == jobs.has(job, jobs.LANED), "job", id, "has a wrong lane flag")
  expect(call("EXISTS", keys.ARGUMENT .. id) == 1, "job", id, "has lost its argument")
  expect((call("EXISTS", keys.OUTCOME .. id) == 1) == jobs.has(job, jobs.HAS_OUTCOME),
    "job", id, "has a wrong outcome flag")
  expect((call("EXISTS", keys.EXTRA .. id) == 1) == jobs.has(job, jobs.HAS_EXTRA), "job", id, "has a wrong extra flag")
  if jobs.has(job, jobs.HELD) then
    expect(state == states.RUNNING, "job", id, "is held in state", state)
    expect(call("ZSCORE", keys.HELD .. job[jobs.WORKER], id), "job", id, "is missing among those its worker holds")
  end
end

local BOUND = { r = queues.DUE_RUNNING, s = queues.DUE_WAITING, t = queues.DUE_WAITING }

local function check_set(letter, name)
  local queue = queues.load(name)
  local key = queues.key(queue, letter)
  for _, id in ipairs(findings.members(key)) do
    local job = jobs.read(id)
    if not job then
      expect(false, "set", letter, "of queue", name, "holds", id, "which has no record")
    else
      expect(states.set_of(job[jobs.STATE]) == letter and job[jobs.QUEUE] == name,
        "set", letter, "of queue", name, "holds", id, "of state", job[jobs.STATE], "and queue", job[jobs.QUEUE])
    end
  end
  expect(call("ZSCORE", keys.QUEUE_NAMES, name), "queue", name, "has jobs and is missing among the names")
  expect(not queue[queues.IS_NEW], "queue", name, "has jobs and no record")
  if letter == states.QUEUED and queues.is_listed(queue) then
    local first = call("ZRANGE", key, 0, 0, "WITHSCORES")
    local priority, bound = tonumber(first[2]), queue[queues.HEAD_PRIORITY]
    expect(bound < priority or bound == priority and queue[queues.HEAD_ID] <= first[1],
      "queue", name, "has a better job than its bound says")
  elseif BOUND[letter] then
    local bound, late_ms = queue[BOUND[letter]], 0
    if letter == states.RUNNING then
      -- A lapsed lease is handled after its grace; after a change of settings all leases are checked.
      late_ms = settings.at(settings.LEASE_GRACE, queue) * 1000
      bound = math.min(bound, tonumber(call("ZSCORE", keys.DUE, due.REVIEW) or meta.NONE))
    end
    findings.expect_bound("set " .. letter .. " of queue " .. name, bound,
      (members.first_score(queue, letter) or meta.NONE) + late_ms)
  end
end

local function check_queue(name)
  local queue = queues.load(name)
  for _, field in ipairs({ queues.DUE_RUNNING, queues.DUE_WAITING, queues.DUE_ENDED }) do
    if queue[field] ~= meta.NONE then
      local member = queues.due_member(queue, field)
      findings.expect_bound(member, tonumber(call("ZSCORE", keys.DUE, member) or meta.NONE), queue[field])
    end
  end
  local is_own = call("EXISTS", keys.OWN_SETTINGS .. name) == 1
  expect(is_own == queues.has(queue, queues.OWN) and (not is_own or meta.has(meta.HAS_OWN)),
    "queue", name, "has a wrong flag of settings of its own")
  local bound = queue[queues.HEAD_PRIORITY]
  if bound == meta.NONE then
    expect(not queues.is_listed(queue) or call("EXISTS", queues.key(queue, states.QUEUED)) == 0,
      "queue", name, "has jobs and no entry in the index of queues")
  else
    expect(tonumber(call("ZSCORE", keys.HEADS .. "*", queue[queues.HEAD_ID] .. name) or meta.NONE) == bound,
      "queue", name, "is not where it belongs in the index of queues")
  end
end

local function check_heads(pattern)
  for _, member in ipairs(findings.members(keys.HEADS .. pattern)) do
    expect(queues.load(member:sub(15))[queues.HEAD_ID] == member:sub(1, 14),
      "index", pattern, "has a stray entry", member)
  end
end

local function check_worker(id)
  local record = workers.load(id)
  local held = call("ZRANGE", keys.HELD .. id, 0, -1)
  expect(record or not held[1], "worker", id, "is unknown and holds jobs")
  for _, job_id in ipairs(held) do
    local job = jobs.read(job_id)
    expect(job and job[jobs.STATE] == states.RUNNING and jobs.has(job, jobs.HELD) and job[jobs.WORKER] == id,
      "worker", id, "does not hold", job_id)
  end
  if record and record.u then
    local has_room = #held < record.m and not record.k and not call("ZSCORE", keys.RESTING, id)
    expect(has_room == (call("ZSCORE", keys.POOL .. record.p, id) ~= false),
      "worker", id, "stands wrongly in its pool")
  end
  for secret in string.gmatch(record and record.s or "", "[^ ]+") do
    expect(check.is_secret(secret), "worker", id, "has a secret that is none")
  end
end

local function check_expiring(name)
  for _, id in ipairs(findings.members(keys.EXPIRING .. name)) do
    expect(call("EXISTS", keys.JOB .. id) == 1, "queue", name, "expects", id, "to expire, which has no record")
  end
  findings.expect_bound("expiry of queue " .. name, queues.load(name)[queues.DUE_WAITING],
    findings.first_score(keys.EXPIRING .. name))
end

--- By the part of a key before the colon; called with the part behind it.
local CHECKS = {
  j = check_job,
  y = check_expiring,
  lane = audit_lanes.check_lane,
  key = audit_lanes.check_key,
  limit = audit_lanes.check_limit,
  lanes = audit_lanes.check_index,
  starts = function(id)
    expect(call("EXISTS", keys.KEY .. id) == 1, "starts of key", id, "are of no key")
  end,
  walk = function(name)
    expect(call("ZSCORE", keys.DUE, due.PLACING .. name), "queue", name, "is to be looked through and nobody does")
  end,
  ["waits-for"] = audit_links.check_waiting,
  dependents = audit_links.check_dependents,
  readers = audit_links.check_readers,
  unique = audit_links.check_unique,
  tagged = audit_links.check_tag,
  failed = audit_links.check_group,
  settings = function(name)
    expect(not queues.load(name)[queues.IS_NEW], "settings of queue", name, "are of no queue")
  end,
  heads = check_heads,
  held = check_worker,
  ["worker-record"] = check_worker,
}

--- By a key's whole name.
local CHECKS_OF_ONE = {
  ["unique-kept"] = audit_links.check_kept,
  ["queue-names"] = function()
    for _, name in ipairs(findings.members(keys.QUEUE_NAMES)) do
      check_queue(name)
    end
  end,
}

--- Lists of names by their key, each with the prefix of the keys that it names.
local LISTS = {
  tags = { keys.TAGS, keys.TAGGED },
  ["tag-names"] = { keys.TAG_NAMES, keys.TAGGED },
  ["failed-groups"] = { keys.FAILED_GROUPS, keys.FAILED },
}

--- Checks one key by its name behind the namespace.
function M.key(name)
  budget.pay(budget.STEP)
  local kind, rest = name:match("^([^:]+):(.*)$")
  if CHECKS[kind] then
    CHECKS[kind](rest)
  elseif kind == "o" or kind == "x" or kind == "a" then
    expect(call("EXISTS", keys.JOB .. rest) == 1, "key", name, "has no job")
  elseif kind and #kind == 1 and states.is_of(kind, states.SETS) then
    check_set(kind, rest)
  elseif CHECKS_OF_ONE[name] then
    CHECKS_OF_ONE[name]()
  elseif LISTS[name] then
    audit_links.check_names(LISTS[name][1], LISTS[name][2])
  end
end

--- Checks meta, schedules, and keys.
function M.bounds()
  audit_definitions.check()
  findings.expect_bound("namespace", meta.state[meta.NEXT_DUE], findings.first_score(keys.DUE))
  findings.expect_bound("keys that open", tonumber(call("ZSCORE", keys.DUE, due.KEYS) or meta.NONE),
    findings.first_score(keys.OPENING))
  expect(meta.state[meta.SLEEPERS] == call("HLEN", keys.SLEEPERS),
    "meta counts", meta.state[meta.SLEEPERS], "channels with sleepers")
end

return M
