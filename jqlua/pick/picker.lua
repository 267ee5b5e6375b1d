-- Gives out jobs: what is around the choice (module pick.chooser) and the starts (module pick.plans).
local chooser = require "jqlua.pick.chooser"
local meta = require "jqlua.base.meta"
local patterns = require "jqlua.pick.patterns"
local places = require "jqlua.pick.places"
local plans = require "jqlua.pick.plans"
local sleepers = require "jqlua.workers.sleepers"
local request = require "jqlua.life.request"
local sweep = require "jqlua.schedules.sweep"
local transition = require "jqlua.life.transition"
local workers = require "jqlua.workers.workers"

local M = {}

-- A worker that picks many finishes as many, and old records have to go as fast as they come.
local SWEEP_STEPS = 100
local STEPS_OF_A_JOB = 0.5

--- Gives out the jobs of a plan, or those that its request got before. The plan's reply gets next_ms, and for each job
--- what is in front, if anything, its document, its argument. Must not raise: writes have begun.
---@param source table kind of request, and functions of plan: fill gives out jobs, and returns whether there may be
--- more; choose finds a place of what is left, or whether the search was cut short; wanted: the queues for which a
--- sleeper is woken
---@return number? ms for how long its worker sleeps, if it was put to sleep
function M.give(plan, source)
  local state, reply, wish, queue = meta.state, plan.reply, plan.wish, plan.queue
  local wait, at = wish.wait, #reply + 1
  reply[at] = 0
  if plan.request and plans.recall(plan, source.kind) then
    transition.commit()
    return nil
  end
  if wait and state[meta.SLEEPERS] > 0 then
    sleepers.awake(wish.worker, wait.on)
  end
  -- What is due goes first.
  local is_due = state[meta.NEXT_DUE] <= state[meta.NOW_MS]
  if is_due or not queue or not places.sees_all(queue) then
    transition.commit()
  end
  if is_due then
    sweep.run(math.max(SWEEP_STEPS, math.floor(wish.count * STEPS_OF_A_JOB)))
  end
  local is_quiet = plan.is_quiet
  local is_more = not is_quiet and source.fill(plan)
  -- A worker that gets no job may have consumed another's wake-up.
  local wakes = wait and (plan.count > 0 or is_quiet) and state[meta.SLEEPERS] > 0
  local is_ready
  if wakes and (is_quiet or plans.is_full(plan, wish.count)) then
    local place, is_cut = source.choose(plan)
    is_ready = place or is_cut
  end
  transition.commit()
  reply[at] = (is_more or plans.is_full(plan, math.huge)) and 0 or meta.next_ms()
  if plan.count > 0 then
    if plan.has_slots then
      workers.took(plan.worker)
    end
    if plan.request then
      request.remember(source.kind, plan.request, table.concat(plan.started, " "))
    end
  end
  if wakes then
    sleepers.go_on(wait.on, is_ready)
  elseif wait and plan.count == 0 and reply[at] ~= 0 and not is_quiet then
    return sleepers.sleep(wish.worker, wait.on, wait.ms, source.wanted(plan), wish.without)
  end
end

local function fill(plan)
  local wish = plan.wish
  if wish.entries.has_patterns and not patterns.build(wish.entries) then
    return true
  end
  for _, entries in ipairs(wish.rounds) do
    if plans.fill(plan, wish.count, chooser.next, entries) then
      return true
    end
  end
  return false
end

local PICK = {
  kind = "p",
  fill = fill,
  choose = function(plan)
    return chooser.best(plan.wish.entries, plan.wish.without)
  end,
  wanted = function(plan)
    return plan.wish.wanted
  end,
}

--- Carries out a pick.
---@return table reply
function M.pick(plan)
  local wish, reply = plan.wish, plan.reply
  if wish.is_registered then
    workers.came_by(wish.worker)
    if wish.without then
      workers.picks_without(wish.worker, wish.without)
    end
  end
  local at, ms = #reply + 1, M.give(plan, PICK)
  if wish.wait then
    -- For how long to block: never 0, which would be for ever, and hardly at all where it was not put to sleep.
    reply[at] = ms or plan.is_quiet and plan.count == 0 and math.max(1, math.floor(wish.wait.ms)) or 1
  end
  return reply
end

return M
