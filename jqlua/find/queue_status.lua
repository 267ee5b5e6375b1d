-- A queue's document, and its status: what happened in the last minutes, which workers serve it, and why its oldest
-- ready job waits.
local budget = require "jqlua.job.budget"
local explanation = require "jqlua.find.explanation"
local jobs = require "jqlua.job.jobs"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local members = require "jqlua.queue.members"
local oldest = require "jqlua.queue.oldest"
local placement = require "jqlua.life.placement"
local queues = require "jqlua.queue.queues"
local served = require "jqlua.find.served"
local settings = require "jqlua.settings.settings"
local settingspec = require "jqlua.settings.settingspec"
local states = require "jqlua.job.states"
local buckets = require "jqlua.statistics.buckets"
local statisticsdoc = require "jqlua.statistics.statisticsdoc"

local M = {}

--- What happened in the last minutes.
---@param recent table of module statistics.statisticsdoc
---@return table shown
local function shown_recent(recent)
  local shown, cell = { span_ms = meta.state[meta.NOW_MS] - recent.from_ms }, recent.cell
  for place, kind in ipairs(buckets.KINDS) do
    shown[kind] = cell[place]
  end
  shown.wait = cell[buckets.WAIT] and statisticsdoc.distribution(cell[buckets.WAIT], true)
  shown.run = cell[buckets.RUN] and statisticsdoc.distribution(cell[buckets.RUN], true)
  return shown
end

--- How long until no job is ready, at the present rate.
---@return number? ms nil for never
local function empties_in(shown, recent)
  local less = recent.done + recent.error + recent.cancelled + recent.skipped + recent.moved - recent.enqueued
  return less > 0 and shown.queued > 0 and shown.queued * recent.span_ms / less or nil
end

--- Why the oldest ready job of a queue waits.
---@param first table? record of the job
---@param is_active boolean? whether an attempt ended in this minute or the one before
---@return string cause constraint, unknown job (no worker of the queue knows its name), no worker or slow
---@return string[] held_by constraints
function M.cause_of(queue, first, is_active)
  local name, held_by = queue[queues.NAME], first and explanation.holders(first, queue) or {}
  if held_by[1] then
    return "constraint", held_by
  elseif first and served.is_unknown(name, first[jobs.NAME]) then
    return "unknown job", held_by
  end
  local workers, channels = served.counts(name)
  local running = members.count(queue, states.RUNNING)
  local is_served = is_active or name == queues.WEBHOOKS or workers + channels + running > 0
  return is_served and "slow" or "no worker", held_by
end

--- Adds the status to a queue's document.
---@param shown table document
---@param minutes number
---@param first table? record of its oldest ready job
local function add_status(queue, shown, minutes, first)
  local name, since_ms = queue[queues.NAME], shown.oldest_ready_ms
  local recent = meta.state[meta.COUNTED] and statisticsdoc.recent(name, minutes) or nil
  shown.workers, shown.channels = served.counts(name)
  shown.recent = recent and shown_recent(recent)
  shown.empties_ms = recent and empties_in(shown, shown.recent)
  if since_ms and shown.paused then
    shown.cause = "paused"
  elseif since_ms then
    local cause, held_by = M.cause_of(queue, first, recent and recent.is_active)
    if held_by[1] then
      shown.cause, shown.held_by = cause, held_by
    elseif meta.state[meta.NOW_MS] - since_ms >= settings.late_ms(queue) then
      shown.cause, shown.unknown = cause, cause == "unknown job" and first[jobs.NAME] or nil
    end
  end
  budget.pay(budget.LOOK)
end

--- By what the queue is shared fairly.
---@return table? fair {by, weights?}; nil if it is not
local function fair_of(queue)
  local by = placement.fairness(queue).t
  if not by then
    return nil
  end
  local fair, weights = { by = by }, redis.call("HGETALL", keys.WEIGHTS .. queue[queues.NAME])
  for i = 1, #weights, 2 do
    fair.weights = fair.weights or {}
    fair.weights[weights[i]] = tonumber(weights[i + 1])
  end
  return fair
end

---@return table document
---@return table? oldest record of its oldest ready job
local function document_of(queue)
  local shown = {
    name = queue[queues.NAME], paused = queue[queues.PAUSED] ~= 0, max_waiting = queue[queues.MAX_WAITING],
  }
  local first
  for state in states.ALL:gmatch(".") do
    local name = states.name(state)
    shown[name] = (shown[name] or 0) + members.count(queue, state)
  end
  if shown.queued > 0 then
    shown.oldest_ready_ms, first = oldest.since(queue)
  end
  if queues.has(queue, queues.FAIR) then
    shown.fair = fair_of(queue)
  end
  if queues.has(queue, queues.OWN) then
    shown.settings = settingspec.show(settings.own(queue))
  end
  return shown, first
end

--- The document, with what is wanted beside it.
---@param wanted? table {minutes?: the queue's status, with figures of so many; today?}
---@return string map
function M.encode(queue, wanted)
  local shown, first = document_of(queue)
  if wanted and wanted.minutes then
    add_status(queue, shown, wanted.minutes, first)
  end
  if wanted and wanted.today then
    shown.today = statisticsdoc.today(queue[queues.NAME])
  end
  return cmsgpack.pack(shown)
end

return M
