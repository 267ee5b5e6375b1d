-- Checks derived data against the job records, a key at a time: each index holds the jobs that belong in it and no
-- others, bounds are no later than what they bound, flags and counts are as the records say.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local due = require "jqlua.base.due"
local budget = require "jqlua.job.budget"
local failure_groups = require "jqlua.links.failure_groups"
local findings = require "jqlua.upkeep.findings"
local audit_lanes = require "jqlua.upkeep.audit_lanes"
local jobs = require "jqlua.job.jobs"
local job_units = require "jqlua.limits.job_units"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local sweep = require "jqlua.schedules.sweep"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local readers = require "jqlua.links.readers"
local registry = require "jqlua.webhooks.registry"
local schedules = require "jqlua.schedules.schedules"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call
local expect = findings.expect

local function has(key, member)
  return call("ZSCORE", key, member) ~= false
end

local function is_there(key)
  return call("EXISTS", key) == 1
end

local function key_of(kind, name)
  return KEYS[1] .. ":" .. kind .. ":" .. name
end

-- Indexes of jobs, by the kind of their keys: `of` says the names behind it where a job belongs, each with its score,
-- or true for any; `list` is the key that all these names stand in.
local INDEXES = {
  y = { of = function(job)
    local may_expire = states.is_of(job[jobs.STATE], states.WAITING) and job[jobs.ATTEMPT] == 0
    return { [job[jobs.QUEUE]] = may_expire and jobs.copy_options(job).expires_ms or nil }
  end },
  lane = { of = function(job)
    local units = job[jobs.STATE] == states.IN_LANE and job_units.of(job)
    return units and { [units[job_units.LANE]] = job[jobs.PRIORITY] } or {}
  end },
  held = { of = function(job)
    return jobs.has(job, jobs.HELD) and { [job[jobs.WORKER]] = true } or {}
  end },
  tagged = { list = "tag-names", of = function(job)
    local names = {}
    for _, tag in ipairs(jobs.copy_options(job).tags or {}) do
      names[tag] = true
    end
    return names
  end },
  failed = { list = "failed-groups", of = function(job)
    local is_error = job[jobs.STATE] == states.ERROR
    return is_error and { [failure_groups.group_of(call("GET", keys.EXTRA .. job[jobs.ID]))] = true } or {}
  end },
}

--- The same of sets of states, by their letter.
local function index_of(kind)
  local is_ready = kind == states.QUEUED or kind == states.IN_LANE
  return INDEXES[kind] or #kind == 1 and states.is_of(kind, states.SETS) and {
    list = "queue-names", of = function(job)
      local belongs = states.set_of(job[jobs.STATE]) == kind
      return { [job[jobs.QUEUE]] = belongs and (not is_ready or job[jobs.PRIORITY]) or nil }
    end,
  }
end

--- What an index holds must belong there.
local function check_index(index, kind, name)
  local key = kind .. ":" .. name
  for _, id in ipairs(findings.members(key_of(kind, name))) do
    local job = jobs.read(id)
    expect(job and index.of(job)[name], "set", key, "holds", id, "which",
      job and "does not belong there: it is " .. states.name(job[jobs.STATE]) or "has no record")
  end
  expect(not index.list or has(KEYS[1] .. ":" .. index.list, name), "set", key, "is missing among the names")
end

--- By a kind of keys the kind of what must be there for each.
local OWNERS = { j = "a", a = "j", o = "j", x = "j", ["waits-for"] = "j", starts = "key", settings = "queue" }

--- By lists of names, the kind of key that must be there for each name.
local LISTS = { ["tag-names"] = "tagged", ["failed-groups"] = "failed", ["queue-names"] = "queue" }

--- By flags of a job, the kind of key that it then has.
local FLAGS = { [jobs.HAS_OUTCOME] = "o", [jobs.HAS_EXTRA] = "x" }

--- What belongs in an index must be there.
local function check_in(job, kind)
  local index, id = index_of(kind), job[jobs.ID]
  for name, score in pairs(index.of(job)) do
    local actual = tonumber(call("ZSCORE", key_of(kind, name), id) or nil)
    expect(actual, "job", id, "is missing in set", kind .. ":" .. name)
    expect(not actual or score == true or score == actual, "job", id, "has", tostring(score), "and score",
      tostring(actual))
  end
end

local function check_job(id)
  local job = jobs.read(id)
  if not job then
    return
  end
  budget.pay(budget.STEP + budget.of_job(job))
  local queue, state, options = queues.load(job[jobs.QUEUE]), job[jobs.STATE], jobs.copy_options(job)
  check_in(job, states.set_of(state))
  local score, base, top = members.score(job), states.band(state)
  expect(base == 0 and top == math.huge or not score or score >= 0 and score < top - base,
    "job", id, "of state", state, "stands in another's band")
  for kind in pairs(INDEXES) do
    check_in(job, kind)
  end
  for flag, kind in pairs(FLAGS) do
    expect(is_there(key_of(kind, id)) == jobs.has(job, flag), "job", id, "has a wrong flag of key", kind .. ":" .. id)
  end
  local is_laned = job[jobs.UNITS] ~= ""
  expect(is_laned == jobs.has(job, jobs.LANED), "job", id, "has a wrong lane flag")
  expect(state ~= (is_laned and states.QUEUED or states.IN_LANE), "job", id, "waits where its units do not belong")
  expect(not jobs.has(job, jobs.HELD) or state == states.RUNNING, "job", id, "is held in state", state)
  expect(is_there(keys.WAITS_FOR .. id) == (state == states.BLOCKED), "job", id, "of state", state,
    "waits for nobody, or need not")
  local is_indexed = options.tags or options.unique_for or state == states.ERROR
  expect(not is_indexed or queues.has(queue, queues.INDEXED),
    "queue", job[jobs.QUEUE], "has jobs in indexes and does not know it")
  local holds_key = options.unique and not options.unique_within and not states.is_of(state, states.ENDED)
  expect(not holds_key or (call("GET", keys.UNIQUE .. options.unique) or ""):find(id, 1, true),
    "job", id, "has lost its unique key")
  expect(state ~= states.KEPT or score ~= readers.HELD or readers.any(job), "job", id,
    "has a result that is held for nobody")
end

local function expect_awaited(id)
  local job = jobs.read(id)
  expect(not job or jobs.has(job, jobs.AWAITED), "job", id, "is waited for and does not know")
end

--- Each member of a job's set must have the job in its own.
local function check_mirrored(id, prefix, other_prefix)
  for _, other in ipairs(findings.members(prefix .. id)) do
    expect(has(other_prefix .. other, id), "job", id, "is linked to", other, "which does not know")
  end
end

--- A unique key is held by existing jobs, or kept: for an ended job, also without a record, or for a time from when its
--- job was enqueued.
local function check_unique(key)
  local is_kept = due.at(due.UNIQUE .. key) ~= nil
  for id in call("GET", keys.UNIQUE .. key):gmatch("[^ ]+") do
    local job = jobs.read(id)
    local options = job and jobs.copy_options(job) or {}
    local has_ended = not job or states.is_of(job[jobs.STATE], states.ENDED)
    expect(is_kept == has_ended or is_kept and options.unique_within, "unique key", key,
      is_kept and "is kept for" or "is of", id, "which has", has_ended and "ended" or "not ended")
    expect(not job or options.unique == key, "unique key", key, "is of", id, "which has another")
  end
end

-- What waits for the clock, by the field of a queue's record that says when the first of it is due.
local TIMED = {
  [queues.DUE_RUNNING] = { states.RUNNING },
  [queues.DUE_WAITING] = { states.SCHEDULED, states.RETRYING },
  [queues.DUE_ENDED] = {},
}

--- Bounds of a queue's record are no later than what they bound.
local function check_queue(name)
  local queue = queues.load(name)
  for field, letters in pairs(TIMED) do
    local member = queues.due_member(queue, field)
    findings.expect_bound(member, due.at(member) or meta.NONE, queue[field] ~= meta.NONE and queue[field] or nil)
    for _, state in ipairs(letters) do
      local first_ms = members.first_score(queue, state)
      if state == states.RUNNING and first_ms then
        first_ms = math.max(first_ms, (tonumber(call("GET", keys.RESPITE)) or -sweep.RESPITE_MS) + sweep.RESPITE_MS)
      end
      findings.expect_bound("set " .. state .. ":" .. name, queue[field], first_ms)
    end
  end
  findings.expect_bound("set y:" .. name, queue[queues.DUE_WAITING], rank.first_score(keys.EXPIRING .. name))
  local is_own = is_there(keys.OWN_SETTINGS .. name)
  expect(is_own == queues.has(queue, queues.OWN) and (not is_own or meta.has(meta.HAS_OWN)),
    "queue", name, "has a wrong flag of settings of its own")
  local bound, key = queue[queues.HEAD_PRIORITY], queues.key(queue, states.QUEUED)
  local first = queues.is_listed(queue) and call("ZRANGE", key, 0, 0, "WITHSCORES") or {}
  expect(not first[1] or not rank.is_before(tonumber(first[2]), first[1], bound, queue[queues.HEAD_ID]),
    "queue", name, "has a better job than its bound says")
  expect(bound == meta.NONE
    or tonumber(call("ZSCORE", keys.HEADS .. "*", queue[queues.HEAD_ID] .. name) or meta.NONE) == bound,
    "queue", name, "is not where it belongs in the index of queues")
end

local function check_worker(id)
  local record, held = workers.load(id), call("ZCARD", keys.HELD .. id)
  expect(record or held == 0, "worker", id, "is unknown and holds jobs")
  if record and record.u then
    local has_room = held < workers.room(record) and not record.k and not workers.is_resting(id)
    expect(has_room == has(keys.POOL .. record.p, id), "worker", id, "stands wrongly in its pool")
  end
end

--- What else is checked of a key, by its kind, or by its whole name; called with what stands behind the colon.
local CHECKS = {
  j = check_job,
  lane = audit_lanes.check_lane,
  key = audit_lanes.check_key,
  limit = audit_lanes.check_limit,
  lanes = audit_lanes.check_index,
  walk = function(name)
    expect(due.at(due.PLACING .. name), "queue", name, "is to be looked through and nobody does")
  end,
  ["waits-for"] = function(id)
    check_mirrored(id, keys.WAITS_FOR, keys.DEPENDENTS)
  end,
  dependents = function(id)
    check_mirrored(id, keys.DEPENDENTS, keys.WAITS_FOR)
    expect_awaited(id)
  end,
  readers = function(id)
    for _, reader in ipairs(findings.members(keys.READERS .. id)) do
      local job = jobs.read(reader)
      local depends = job and not states.is_of(job[jobs.STATE], states.ENDED) and jobs.copy_options(job).depends or {}
      expect((" " .. table.concat(depends, " ")):find(" " .. id, 1, true), "job", id, "has its result held for", reader,
        "which does not need it")
    end
    expect_awaited(id)
  end,
  unique = check_unique,
  heads = function(pattern)
    for _, member in ipairs(findings.members(keys.HEADS .. pattern)) do
      expect(queues.load(member:sub(15))[queues.HEAD_ID] == member:sub(1, 14), "index", pattern, "has a stray entry",
        member)
    end
  end,
  held = check_worker,
  ["worker-record"] = check_worker,
  queue = check_queue,
  due = function()
    for _, member in ipairs(findings.members(keys.DUE)) do
      local kind, name = member:sub(1, 1), member:sub(2)
      expect(kind ~= due.UNIQUE or is_there(keys.UNIQUE .. name), "unique key", name, "is kept, but is of no job")
      expect(kind ~= due.RESTING or workers.load(name), "worker", name, "rests and has no record")
    end
  end,
}

--- Checks one key by its name behind the namespace.
function M.key(name)
  budget.pay(budget.STEP)
  local kind, rest = name:match("^([^:]+):?(.*)$")
  local index = index_of(kind)
  if index then
    check_index(index, kind, rest)
  end
  if OWNERS[kind] then
    expect(is_there(key_of(OWNERS[kind], rest)), "key", name, "is of nothing that is there")
  end
  for _, listed in ipairs(LISTS[name] and findings.members(KEYS[1] .. ":" .. name) or {}) do
    expect(is_there(key_of(LISTS[name], listed)), LISTS[name], listed, "is listed and is not there")
  end
  if CHECKS[kind] then
    CHECKS[kind](rest)
  end
end

--- Checks what operators have defined, meta, and what opens by time.
function M.bounds()
  for records, ids in pairs({ [keys.SCHEDULES] = keys.SCHEDULE_IDS, [keys.API_KEYS] = keys.API_KEY_IDS }) do
    expect(call("HLEN", records) == call("ZCARD", ids), "key", records, "has not as many records as there are ids")
  end
  for _, id in ipairs(findings.members(keys.SCHEDULE_IDS)) do
    local schedule = schedules.load(id)
    expect(schedule, "schedule", id, "has no record")
    if schedule then
      expect(not (schedule.n and schedule.s.paused), "schedule", id, "is paused and has a next moment")
      findings.expect_bound("schedule " .. id, due.at(due.SCHEDULE .. id) or meta.NONE, schedule.n or meta.NONE)
    end
  end
  for _, id in ipairs(call("HKEYS", keys.API_KEY_USES)) do
    expect(call("HEXISTS", keys.API_KEYS, id) == 1, "key", id, "of the API was used and is not there")
  end
  expect(meta.has(meta.HAS_WEBHOOKS) == (registry.all()[1] ~= nil), "meta has a wrong flag of webhooks")
  for _, id in ipairs(call("HKEYS", keys.WEBHOOK_SECRETS)) do
    expect(registry.find(id), "secrets are of webhook", id, "which is not there")
  end
  findings.expect_bound("namespace", meta.state[meta.NEXT_DUE], rank.first_score(keys.DUE))
  findings.expect_bound("keys that open", due.at(due.KEYS) or meta.NONE, rank.first_score(keys.OPENING))
  expect(meta.state[meta.SLEEPERS] == call("HLEN", keys.SLEEPERS),
    "meta counts", meta.state[meta.SLEEPERS], "channels with sleepers")
end

return M
