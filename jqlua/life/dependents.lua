-- Jobs that wait for other jobs: when they wait, and what follows.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local batch = require "jqlua.base.batch"
local due = require "jqlua.base.due"
local failure = require "jqlua.life.failure"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local placement = require "jqlua.life.placement"
local links = require "jqlua.links.links"
local transition = require "jqlua.life.transition"

local M = {}

local call = redis.call

--- Whether a job that depends on another has to wait for it. A dependency that failed already counts like one that
--- fails now.
---@param if_failed? string
---@return boolean waits
function M.must_wait(other_id, if_failed)
  local other = jobs.read(other_id)
  local state = other and other[jobs.STATE]
  if not state or state == states.KEPT or state == states.DONE or state == states.SKIPPED then
    return false
  elseif state == states.ERROR or state == states.CANCELLED then
    return if_failed ~= "run"
  end
  return true
end

--- Makes a job wait for others. If one failed already, the next sweep handles it.
---@param others string[] ids
function M.link_all(id, others)
  links.join(id, others)
  for _, other_id in ipairs(others) do
    local other = jobs.read(other_id)
    local state = other and other[jobs.STATE]
    if state == states.ERROR or state == states.CANCELLED then
      due.note(due.DEPENDENTS .. state .. other_id, due.AT_ONCE)
    end
  end
end

--- Ends the wait of a job: it is queued, or scheduled if its time is still to come. With if_failed `only` it is
--- skipped; if a dependency failed, it no longer has `only`.
function M.free(job)
  local now = meta.state[meta.NOW_MS]
  local options = jobs.copy_options(job)
  if options.if_failed == "only" then
    return transition.stop(job, states.SKIPPED)
  elseif options.ready_ms and options.ready_ms > now then
    transition.move(job, states.SCHEDULED, options.ready_ms)
  else
    options.ready_ms = now
    jobs.set_options(job, options)
    placement.enter(job)
  end
  jobs.save(job)
end

--- After a dependency failed: with if_failed `only` the job runs when the rest has ended.
---@return string if_failed
local function policy_of(job)
  local options = jobs.copy_options(job)
  if options.if_failed == "only" then
    options.if_failed = "run"
    jobs.set_options(job, options)
    jobs.save(job)
  end
  return options.if_failed or "wait"
end

--- Applies the end of a job to a dependent.
local function settle(job, id, how)
  local policy = how == states.DONE and "run" or how ~= links.ALL_CANCELLED and policy_of(job)
  if how == links.ALL_CANCELLED then
    links.tree[1] = true
    transition.stop(job, states.CANCELLED)
    links.tree[1] = nil
  elseif policy == "fail" then
    failure.fail_dependency(job, id, how == states.ERROR and "failed" or "was cancelled")
  elseif policy == "run" and links.cut(job[jobs.ID], id) then
    M.free(job)
  end
end

--- Handles the dependents of an ended job.
---@param name string how it ended, its id, and the last one handled, if any
---@return number count
function M.sweep(name, limit)
  local how, id, last = name:match("^(%l)(%x+):?(%x*)$")
  local key = keys.DEPENDENTS .. id
  local waiting = call("ZRANGEBYLEX", key, last == "" and "-" or "(" .. last, "+", "LIMIT", 0, limit)
  local looked = 0
  budget.pay(budget.STEP)
  for _, dependent in ipairs(waiting) do
    local job = jobs.read(dependent)
    if job and job[jobs.STATE] == states.BLOCKED then
      settle(job, id, how)
    else
      links.cut(dependent, id)
    end
    looked = looked + 1
    -- A job that waits for more only loses a link, however much it carries.
    local waits = not job or job[jobs.STATE] == states.BLOCKED
    if not budget.pay(waits and budget.STEP or budget.of_job(job)) then
      break
    end
  end
  batch.flush()
  due.set(due.DEPENDENTS .. name, meta.NONE)
  if looked == limit or looked < #waiting then
    due.set(due.DEPENDENTS .. how .. id .. ":" .. waiting[looked], due.AT_ONCE)
  end
  return looked
end

return M
