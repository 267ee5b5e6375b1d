-- Alerts about a queue: why its jobs wait longer than usual, and what keeps it from taking more.
local alerts = require "jqlua.alerts.alerts"
local attempt_alerts = require "jqlua.alerts.attempt_alerts"
local blocked_alerts = require "jqlua.alerts.blocked_alerts"
local budget = require "jqlua.job.budget"
local common_values = require "jqlua.find.common_values"
local constraintdoc = require "jqlua.limits.constraintdoc"
local jobs = require "jqlua.job.jobs"
local meta = require "jqlua.base.meta"
local oldest = require "jqlua.queue.oldest"
local members = require "jqlua.queue.members"
local queues = require "jqlua.queue.queues"
local queue_status = require "jqlua.find.queue_status"
local settings = require "jqlua.settings.settings"
local states = require "jqlua.job.states"
local usual = require "jqlua.alerts.usual"
local wording = require "jqlua.alerts.wording"

local M = {}

local TIMES = 2 -- as long as usual
local CROWD = 50 -- waiting jobs, from which on it is looked for what they have in common
local SAMPLE = 50
local MOST = 0.6 -- of them, that have a value
local MOST_BEFORE = 0.4 -- of the jobs before, that may have it as well

local function count(queue, ...)
  local sum = 0
  for _, state in ipairs({ ... }) do
    sum = sum + members.count(queue, state)
  end
  return sum
end

--- What each value of the first or last jobs of a set is the value of: path -> value -> share.
local function values_of(queue, set, is_newest)
  local ids = members.ids(queue, set, SAMPLE, is_newest)
  local counts = {}
  for _, id in ipairs(ids) do
    common_values.count(counts, id)
  end
  return counts, #ids
end

--- What most of the waiting jobs have in common that those before had not: who floods the queue.
---@return string? path
---@return string? value in the form that names keys
---@return number? share
local function flooding(queue)
  local set = count(queue, states.IN_LANE) >= CROWD and states.IN_LANE or states.QUEUED
  local counts, size = values_of(queue, set, true)
  if size < SAMPLE then
    return nil
  end
  local before, size_before = {}, 0
  for _, state in ipairs({ states.DONE, states.KEPT }) do
    local more, size_more = values_of(queue, state, false)
    for value, times in pairs(more) do
      before[value] = (before[value] or 0) + times
    end
    size_before = size_before + size_more
  end
  for _, entry in ipairs(common_values.most(counts, SAMPLE)) do
    local path, value, times = entry[1], entry[2], entry[3]
    local was = before[struct.pack(">I2", #path) .. path .. value] or 0
    if times < MOST * size then
      return nil
    elseif size_before > 0 and was <= MOST_BEFORE * size_before or size_before == 0 and times < size then
      return path, value, times / size
    end
  end
end

--- Names a value in a sentence.
local function shown(value)
  local plain = cmsgpack.unpack(constraintdoc.value_blob(value))
  return wording.name(tostring(plain):sub(1, 60))
end

-- By why the oldest job waits: the kind of alert, what that is called, and what to do.
local CAUSES = {
  constraint = { "late", "held by %s", "See whether the limit is meant to hold so many." },
  ["no worker"] = { "unserved", "nobody serves it",
    "Start a worker for it, or see whether its workers name another queue." },
  ["unknown job"] = { "unknown_job", "none of its workers knows jobs named %s",
    "Start a worker of a program that has it, or cancel them." },
  hung = { "stopped", "no attempt ends", "Its workers hang: see those first." },
  stopped = { "stopped", "no attempt ends", "See what its workers do, and their logs." },
  slow = { "late", "its workers are slower than its jobs come",
    "Start more workers for it, or give them more slots." },
}

local function check_wait(queue, queued, is_stuck)
  local name, late_ms = queue[queues.NAME], settings.late_ms(queue)
  local since_ms, job = oldest.since(queue)
  local age_ms = since_ms and meta.state[meta.NOW_MS] - since_ms or 0
  if age_ms < late_ms then
    return
  end
  local is_active = usual.recent(name).is_active
  local cause, held_by = queue_status.cause_of(queue, job, is_active)
  if cause == "slow" then
    cause = is_stuck and "hung" or is_active and "slow" or "stopped"
  end
  local kind, why, advice = unpack(CAUSES[cause])
  local usual_ms = usual.of_queue(name).wait_ms
  if kind == "late" and usual_ms and age_ms < TIMES * usual_ms then
    return
  end
  local path, value, share
  if queued >= CROWD then
    path, value, share = flooding(queue)
  end
  local text = string.format("Queue %s: %s, the first for %s%s; ", wording.name(name), wording.waiting(queued),
    wording.span(age_ms), usual_ms and ", where 95 % wait at most " .. wording.span(usual_ms) or "")
    .. why:format(held_by[1] and table.concat(held_by, ", ") or job and wording.name(job[jobs.NAME]))
  if path then
    text = string.format("%s; %s of the newest have %s %s", text, wording.percent(share), path, shown(value))
  end
  alerts.add({
    kind = kind, level = held_by[1] and not path and alerts.WARNING or alerts.PROBLEM, queue = name,
    since_ms = since_ms, constraint = held_by[1], text = text, advice = advice,
    values = {
      waits_ms = age_ms, usual_ms = usual_ms, queued = queued, path = path, value = path and shown(value),
      share = share, name = kind == "unknown_job" and job[jobs.NAME] or nil,
    },
  }, queued)
end

local function check_settings(queue, queued)
  local name = queue[queues.NAME]
  if queue[queues.PAUSED] ~= 0 and queued > 0 then
    alerts.add({
      kind = "paused", level = alerts.WARNING, queue = name,
      text = string.format("Queue %s is paused; %s", wording.name(name), wording.waiting(queued)),
      advice = "Resume it when its jobs may start.", values = { queued = queued },
    }, queued)
  end
  local most = queue[queues.MAX_WAITING]
  local waiting = most > 0 and count(queue, states.WAITING:match("(.)(.)(.)(.)(.)")) or 0
  if most > 0 and waiting >= most then
    alerts.add({
      kind = "full", level = alerts.PROBLEM, queue = name,
      text = string.format("Queue %s is full: %s, and more are refused", wording.name(name), wording.waiting(waiting)),
      advice = "Start more workers for it, or raise its max_waiting.", values = { max_waiting = most },
    }, waiting)
  end
end

--- What is wrong with a queue.
---@param name string
function M.check(name)
  local queue = queues.load(name)
  local queued, running = count(queue, states.QUEUED, states.IN_LANE), count(queue, states.RUNNING)
  check_settings(queue, queued)
  local is_stuck = running > 0 and attempt_alerts.check_hung(queue)
  if queued > 0 and queue[queues.PAUSED] == 0 then
    check_wait(queue, queued, is_stuck)
  end
  if count(queue, states.BLOCKED) > 0 then
    blocked_alerts.check(queue)
  end
  if count(queue, states.RETRYING, states.ERROR) > 0 then
    attempt_alerts.check_failures(queue)
  end
  budget.pay(1)
end

return M
