-- What is looked at for alerts: of a queue why its oldest ready job waits, attempts that hang or fail, failed jobs that
-- others wait for; constraints whose paths lead nowhere, workers that cannot be reached or died with jobs, groups of
-- failures that are new, and that nobody sweeps.
local alerts = require "jqlua.alerts.alerts"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local common_values = require "jqlua.find.common_values"
local constraintdoc = require "jqlua.limits.constraintdoc"
local constraints = require "jqlua.limits.constraints"
local due = require "jqlua.base.due"
local failure_groups = require "jqlua.links.failure_groups"
local jobs = require "jqlua.job.jobs"
local keyrecord = require "jqlua.limits.keyrecord"
local keys = require "jqlua.base.keys"
local members = require "jqlua.queue.members"
local meta = require "jqlua.base.meta"
local oldest = require "jqlua.queue.oldest"
local queue_status = require "jqlua.find.queue_status"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local states = require "jqlua.job.states"
local statisticsdoc = require "jqlua.statistics.statisticsdoc"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

local function count(queue, letters)
  local sum = 0
  for state in letters:gmatch(".") do
    sum = sum + members.count(queue, state)
  end
  return sum
end

-- What floods a queue ------------------------------------------------------------------------------------------------

local SAMPLE = 50 -- waiting jobs, from which on it is looked for what the newest have in common
local MOST = 0.6 -- of them, that have a value
local MOST_BEFORE = 0.4 -- of the jobs before, that may have it as well

--- Counts the values of the first or last jobs of a set.
---@return number jobs
local function count_values(counts, queue, state, is_newest)
  local ids = members.ids(queue, state, SAMPLE, is_newest)
  for _, id in ipairs(ids) do
    common_values.count(counts, id)
  end
  return #ids
end

--- The paths that name keys of limits.
---@return table<string, boolean>
local function key_paths()
  local paths = {}
  for _, definition in ipairs(constraints.all()) do
    for _, path in ipairs(type(definition.bg) == "table" and definition.bg or { definition.bg }) do
      paths[path] = true
    end
  end
  return paths
end

--- What most of the waiting jobs have in common that those before had not: of several such values rather a limit's key.
---@return string? flood words of it
local function flood_of(queue)
  local state = members.count(queue, states.IN_LANE) >= SAMPLE and states.IN_LANE or states.QUEUED
  local counts, before = {}, {}
  if count_values(counts, queue, state, true) < SAMPLE then
    return nil
  end
  local size = count_values(before, queue, states.DONE) + count_values(before, queue, states.KEPT)
  local is_key, found = key_paths(), nil
  for _, entry in ipairs(common_values.most(counts, SAMPLE)) do
    local path, value, times = unpack(entry)
    if times >= MOST * SAMPLE and common_values.times(before, path, value) <= MOST_BEFORE * size
      and (size > 0 or times < SAMPLE) -- what all have in common tells nothing without those before
      and (not found or is_key[path] and not is_key[found[1]]) then
      found = entry
    end
  end
  if found then
    local path, value, times = unpack(found)
    local plain = value:match("^s(.*)") or tostring(cmsgpack.unpack(constraintdoc.value_blob(value)))
    return string.format("%s of the newest have %s %s", alerts.percent(times / SAMPLE), path,
      alerts.name(check.message(plain, 60)))
  end
end

-- Jobs that wait -----------------------------------------------------------------------------------------------------

-- By why the oldest job waits: the kind of alert, and what that is called.
local CAUSES = {
  constraint = { "late", "held by %s" }, ["no worker"] = { "unserved", "nobody serves it" },
  ["unknown job"] = { "unknown_job", "none of its workers knows jobs named %s" },
  stopped = { "stopped", "no attempt ends" }, slow = { "late", "its workers are slower than its jobs come" },
}
local TIMES = 2 -- as long as usual

local function check_wait(queue, queued, is_stuck)
  local name, now = queue[queues.NAME], meta.state[meta.NOW_MS]
  local since_ms, job = oldest.since(queue)
  if not job or now - since_ms < settings.late_ms(queue) then
    return
  end
  local is_active = statisticsdoc.recent(name).is_active
  local cause, held_by = queue_status.cause_of(queue, job, is_active)
  local kind, why = unpack(CAUSES[cause == "slow" and (is_stuck or not is_active) and "stopped" or cause])
  local usual_ms = statisticsdoc.of_queue(name).wait_ms
  if (kind == "late" or kind == "stopped") and usual_ms and now - since_ms < TIMES * usual_ms then
    return
  end
  local flood = queued >= SAMPLE and flood_of(queue)
  local is_minor = held_by[1] and not flood
  alerts.add(kind, queued, { queue = name, since_ms = since_ms, constraint = held_by[1], is_minor = is_minor },
    "Queue %s: %s, the first for %s%s; %s%s", alerts.name(name), alerts.waiting(queued), alerts.span(now - since_ms),
    usual_ms and ", where 95 % wait at most " .. alerts.span(usual_ms) or "",
    why:format(held_by[1] and table.concat(held_by, ", ") or alerts.name(job[jobs.NAME])),
    flood and "; " .. flood or "")
end

local function check_settings(queue, queued)
  local name, most = queue[queues.NAME], queue[queues.MAX_WAITING]
  if queue[queues.PAUSED] ~= 0 and queued > 0 then
    alerts.add("paused", queued, { queue = name }, "Queue %s is paused; %s", alerts.name(name),
      alerts.waiting(queued))
  end
  local waiting = most > 0 and count(queue, states.WAITING) or 0
  if most > 0 and waiting >= most then
    alerts.add("full", waiting, { queue = name }, "Queue %s is full: %s, and more are refused", alerts.name(name),
      alerts.waiting(waiting))
  end
end

-- Attempts -----------------------------------------------------------------------------------------------------------

local MOST_RUNNING = 100 -- that are looked at
local HANGS = 20 -- times as long as usual

--- Attempts that run for far longer than usual, though their leases are renewed.
---@return boolean is_all whether all that were looked at are such
local function check_hung(queue)
  local name, now, late_ms = queue[queues.NAME], meta.state[meta.NOW_MS], settings.late_ms(queue)
  local ids = members.ids(queue, states.RUNNING, MOST_RUNNING)
  local longest, usual_ms, hung = nil, 0, 0
  for _, id in ipairs(ids) do
    local job = jobs.read(id)
    budget.pay(budget.LOOK)
    local age_ms = job and now - job[jobs.STARTED_MS] or 0
    local run_ms = age_ms >= late_ms and statisticsdoc.run_ms(name, job[jobs.NAME])
    if run_ms and age_ms >= HANGS * run_ms then
      hung = hung + 1
      if not longest or job[jobs.STARTED_MS] < longest[jobs.STARTED_MS] then
        longest, usual_ms = job, run_ms
      end
    end
  end
  if longest then
    local worker, since_ms = longest[jobs.WORKER], longest[jobs.STARTED_MS]
    alerts.add("hung", hung,
      { queue = name, worker = worker, job = longest[jobs.ID], since_ms = since_ms + HANGS * usual_ms },
      "Worker %s hangs: %s of %s for %s, of which 95 %% take at most %s", alerts.name(worker),
      hung == 1 and "an attempt" or alerts.count(hung, "attempt"), alerts.name(longest[jobs.NAME]),
      alerts.span(now - since_ms), alerts.span(usual_ms))
  end
  return hung > 0 and hung == #ids
end

local FAILS = 5 -- failures in the last minutes
local SHARE = 0.1 -- of attempts that failed
local BAD_SHARE = 0.2
local FAIL_TIMES = 3 -- as many as usual

--- The newest failure's group.
---@return string?
local function newest_group(queue)
  for _, state in ipairs({ states.RETRYING, states.ERROR }) do
    local id = members.ids(queue, state, 1, true)[1]
    local raw = id and call("GET", keys.EXTRA .. id)
    local group = raw and cmsgpack.unpack(raw).g
    if group then
      return group
    end
  end
end

--- Attempts that failed or lapsed more than usual in the last minutes.
local function check_failures(queue)
  local name = queue[queues.NAME]
  local recent = statisticsdoc.recent().failures > 0 and statisticsdoc.recent(name)
    or { failures = 0, ended = 0, lapsed = 0 }
  local share = recent.failures / math.max(recent.ended, 1)
  local usual_share = recent.failures >= FAILS and share >= SHARE and statisticsdoc.of_queue(name).share
  if usual_share ~= false and share >= FAIL_TIMES * (usual_share or 0) then
    local group = newest_group(queue)
    alerts.add("failing", recent.failures,
      { queue = name, group = group, since_ms = recent.since_ms, is_minor = share < BAD_SHARE },
      "Queue %s: %s of attempts failed in the last %d min%s%s", alerts.name(name), alerts.percent(share),
      statisticsdoc.MINUTES, usual_share and ", usually " .. alerts.percent(usual_share) or "",
      group and "; the newest with " .. alerts.name(group) or "")
  end
  if recent.lapsed > 0 then
    alerts.add("lapsed", recent.lapsed, { queue = name, since_ms = recent.since_ms },
      "Queue %s: %s lapsed in the last %d min", alerts.name(name), alerts.count(recent.lapsed, "lease"),
      statisticsdoc.MINUTES)
  end
end

-- Jobs that wait for one that failed ---------------------------------------------------------------------------------

local MOST_BLOCKED = 20 -- of a queue that are looked at
local MOST_OTHERS = 5 -- of what a job waits for

---@param job table? nil: its record is gone, so it will never be retried
---@param name string a queue with jobs that wait for it
local function add_blocked(id, job, name)
  local waiting = call("ZCARD", keys.DEPENDENTS .. id)
  local about = { queue = job and job[jobs.QUEUE] or name, job = id, since_ms = job and job[jobs.ENDED_MS] }
  alerts.add("blocked", waiting, about, "Job %s%s, and %s for it", id,
    job and " (" .. alerts.name(job[jobs.NAME]) .. (job[jobs.STATE] == states.ERROR and ") failed" or ") was cancelled")
    or " failed or was cancelled, and is gone", alerts.waiting(waiting))
end

--- Names each once.
local function check_blocked(queue)
  local looked = {}
  for _, id in ipairs(members.ids(queue, states.BLOCKED, MOST_BLOCKED)) do
    for _, other_id in ipairs(call("ZRANGE", keys.WAITS_FOR .. id, 0, MOST_OTHERS - 1)) do
      local other = jobs.read(other_id)
      budget.pay(budget.LOOK)
      -- The record of one that is done may go before its dependents were swept, which is due at once.
      local is_over = not other and meta.state[meta.NEXT_DUE] > due.AT_ONCE
        or other and states.is_of(other[jobs.STATE], states.ERROR .. states.CANCELLED)
      if is_over and not looked[other_id] then
        add_blocked(other_id, other, queue[queues.NAME])
      end
      looked[other_id] = true
    end
  end
end

--- What is wrong with a queue.
---@param name string
function M.check_queue(name)
  local queue = queues.load(name)
  local queued = count(queue, states.QUEUED .. states.IN_LANE)
  check_settings(queue, queued)
  local is_stuck = members.count(queue, states.RUNNING) > 0 and check_hung(queue)
  if queued > 0 and queue[queues.PAUSED] == 0 then
    check_wait(queue, queued, is_stuck)
  end
  if members.count(queue, states.BLOCKED) > 0 then
    check_blocked(queue)
  end
  if count(queue, states.RETRYING .. states.ERROR) > 0 then
    check_failures(queue)
  end
  budget.pay(1)
end

-- What is no queue ----------------------------------------------------------------------------------------------------

local NOWHERE = "n" -- the value of a path that leads nowhere
local MOST_LANES = 100

--- Jobs are held under the key of those in which no path of a constraint leads anywhere: they share it.
function M.check_constraint(id)
  local definition = constraints.load(id)
  if not definition or not definition.b then
    return
  end
  local values = {}
  for i in ipairs(definition.b) do
    values[i] = NOWHERE
  end
  local key = keyrecord.load(definition.n, constraints.join(values))
  local held = key.queues ~= "" and constraintdoc.held_by(key, MOST_LANES).jobs or 0
  budget.pay(budget.STEP)
  if held > 0 then
    local path = type(definition.bg) == "table" and table.concat(definition.bg, ", ") or definition.bg
    alerts.add("path", held + key.in_use, { constraint = id }, "Limit %s: %s leads nowhere in %s, which share one key",
      alerts.name(id), path, alerts.count(held + key.in_use, "job"))
  end
end

local DEAD_MS = 900000 -- so long it is told that a worker died

function M.check_worker(id)
  local worker = workers.load(id)
  if worker then
    if worker.u and worker.w == "unreachable" and workers.is_resting(id) then -- one that pulls has no address
      alerts.add("unreachable", nil, { worker = id, since_ms = worker.t },
        "Worker %s cannot be reached at %s", alerts.name(worker.n), worker.u)
    end
    return
  end
  worker = workers.find(id)
  if worker and workers.is_gone(worker) and meta.state[meta.NOW_MS] - worker.t < DEAD_MS then
    local lost = worker.d and #(worker.x or {}) or #workers.running(id)
    if lost > 0 then
      alerts.add("worker_died", lost, { worker = id, since_ms = worker.t },
        "Worker %s died, or lost its network, with %s", alerts.name(worker.n), alerts.count(lost, "job"))
    end
  end
end

local RECENT_MS = 600000
local FEW = 3
local MANY = 50

--- A group of failures is new, and grows.
function M.check_failures(group)
  local shown, now = failure_groups.look(group), meta.state[meta.NOW_MS]
  if not shown or shown.count < FEW or shown.last_ms < now - RECENT_MS or now - shown.first_ms >= alerts.NEW_MS then
    return
  end
  local message = check.message(shown.message:match("^%s*([^\n]*)"), 120)
  alerts.add("new_failures", shown.count, { group = group, since_ms = shown.first_ms, is_minor = shown.count < MANY },
    "New failure %s: %s within %s%s", alerts.name(group), alerts.count(shown.count, "job"),
    alerts.span(math.max(1000, now - shown.first_ms)), message ~= "" and ". The newest says: " .. message or "")
end

-- What is due is done within this time where anybody sweeps.
local PATIENCE_MS = 10000

function M.check_sweeps()
  local late_ms = meta.state[meta.NOW_MS] - PATIENCE_MS
  local first = call("ZRANGEBYSCORE", keys.DUE, 1, late_ms, "WITHSCORES", "LIMIT", 0, 1)
  if first[1] then
    alerts.add("unswept", nil, { since_ms = tonumber(first[2]) },
      "Nothing sweeps: leases that ended, retries and schedules that are due are not seen to")
  end
end

return M
