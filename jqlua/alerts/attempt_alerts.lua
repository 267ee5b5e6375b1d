-- Alerts about the attempts of a queue: those that hang, though their leases are renewed, and those that fail.
local alerts = require "jqlua.alerts.alerts"
local budget = require "jqlua.job.budget"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local settings = require "jqlua.settings.settings"
local states = require "jqlua.job.states"
local usual = require "jqlua.alerts.usual"
local wording = require "jqlua.alerts.wording"

local M = {}

local call = redis.call

local MOST_RUNNING = 100 -- that are looked at
local HANGS = 20 -- times as long as usual
local MOST_WORKERS = 3
local FAILS = 5 -- failures in the last minutes
local SHARE = 0.1 -- of attempts that failed
local BAD_SHARE = 0.2
local TIMES = 3 -- as many as usual

---@param attempts table {worker, longest: job, count, run_ms: usual of that}
local function add_hung(queue, attempts)
  local job, worker = attempts.longest, attempts.worker
  local queue_name, age_ms = queue[queues.NAME], meta.state[meta.NOW_MS] - job[jobs.STARTED_MS]
  local jobs_text = attempts.count == 1 and "an attempt" or wording.number(attempts.count) .. " attempts"
  alerts.add({
    kind = "hung", level = alerts.PROBLEM, queue = queue_name, worker = worker, job = job[jobs.ID],
    since_ms = job[jobs.STARTED_MS] + HANGS * attempts.run_ms,
    text = string.format("Worker %s hangs: %s of %s for %s, of which 95 %% take at most %s", wording.name(worker),
      jobs_text, wording.name(job[jobs.NAME]), wording.span(age_ms), wording.span(attempts.run_ms)),
    advice = "Look at what it waits for; take its jobs from it, then restart it.",
    values = { name = job[jobs.NAME], age_ms = age_ms, usual_ms = attempts.run_ms },
  }, attempts.count)
end

--- Attempts that run for far longer than usual.
---@return boolean is_all whether all that were looked at are such
function M.check_hung(queue)
  local now, late_ms = meta.state[meta.NOW_MS], settings.late_ms(queue)
  local ids = members.ids(queue, states.RUNNING, MOST_RUNNING)
  local by_worker, hanging, hung = {}, {}, 0
  for _, id in ipairs(ids) do
    local job = jobs.read(id)
    budget.pay(budget.LOOK)
    local age_ms = job and now - job[jobs.STARTED_MS] or 0
    local run_ms = age_ms >= late_ms and usual.run_ms(queue[queues.NAME], job[jobs.NAME])
    if run_ms and age_ms >= HANGS * run_ms then
      hung = hung + 1
      local worker = job[jobs.WORKER]
      local attempts = by_worker[worker]
      if not attempts then
        attempts = { worker = worker, longest = job, count = 0, run_ms = run_ms }
        by_worker[worker], hanging[#hanging + 1] = attempts, attempts
      end
      attempts.count = attempts.count + 1
      if job[jobs.STARTED_MS] < attempts.longest[jobs.STARTED_MS] then
        attempts.longest, attempts.run_ms = job, run_ms
      end
    end
  end
  table.sort(hanging, function(a, b)
    return a.longest[jobs.STARTED_MS] < b.longest[jobs.STARTED_MS]
  end)
  for i = 1, math.min(#hanging, MOST_WORKERS) do
    add_hung(queue, hanging[i])
  end
  return hung > 0 and hung == #ids
end

--- The newest failure's group and message.
local function newest_failure(queue)
  for _, state in ipairs({ states.RETRYING, states.ERROR }) do
    local id = members.ids(queue, state, 1, true)[1]
    local raw = id and call("GET", keys.EXTRA .. id)
    local extra = raw and cmsgpack.unpack(raw)
    if extra and (extra.m or extra.g) then
      return extra.g, extra.m
    end
  end
end

local function add_failing(queue, recent, usual_share)
  local share = recent.failures / recent.ended
  local name = queue[queues.NAME]
  local group, message = newest_failure(queue)
  alerts.add({
    kind = "failing", level = share >= BAD_SHARE and alerts.PROBLEM or alerts.WARNING, queue = name, group = group,
    since_ms = recent.since_ms,
    text = string.format("Queue %s: %s of attempts failed in the last %d min%s%s", wording.name(name),
      wording.percent(share), usual.MINUTES, usual_share and ", usually " .. wording.percent(usual_share) or "",
      group and "; the newest with " .. wording.name(group) or ""),
    advice = "See what changed, such as a deploy; once that is mended, retry the failures.",
    values = {
      failures = recent.failures, ended = recent.ended, share = share, usual_share = usual_share,
      message = message and message:sub(1, 200),
    },
  }, recent.failures)
end

--- Attempts that failed or lapsed more than usual in the last minutes.
function M.check_failures(queue)
  if usual.recent().failures == 0 then
    return
  end
  local name = queue[queues.NAME]
  local recent = usual.recent(name)
  if recent.failures >= FAILS and recent.failures >= SHARE * recent.ended then
    local usual_share = usual.of_queue(name).share
    if recent.failures / recent.ended >= TIMES * (usual_share or 0) then
      add_failing(queue, recent, usual_share)
    end
  end
  if recent.lapsed > 0 then
    alerts.add({
      kind = "lapsed", level = alerts.WARNING, queue = name, since_ms = recent.since_ms,
      text = string.format("Queue %s: %s lapsed in the last %d min", wording.name(name),
        wording.count(recent.lapsed, "lease"), usual.MINUTES),
      advice = "A worker died, hung or lost its network, or a job ran for its max_runtime: see the workers' logs.",
      values = { lapsed = recent.lapsed },
    }, recent.lapsed)
  end
end

return M
