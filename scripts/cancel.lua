-- Cancels jobs.
--
-- The reply has for each job the state it was in, NOTFOUND, or CONFLICT: it runs, and running jobs are protected.
-- With `where` each call does a step; repeat it with the cursor until that is empty.
--
-- @arg    ids         list<job>? 1..1000  the jobs; or
-- @arg    where       Where?              all that match
-- @arg    cursor      cursor?             with where: of the step before
-- @arg    count       integer? 1..1000 = 100  with where: how many to change, at most
-- @arg    force       flag? = false       running jobs, too, which the setting `cancel_running` protects
-- @arg    dependents  leave|cancel|refuse? = leave  what to do with jobs that wait for them; refuse: CONFLICT if any do
-- @arg    atomic      flag? = false       all of ids or none
-- @arg    actor       actor?
-- @reply  states jobs
-- @reply  {cursor: cursor, changed: integer} with where
-- @errors INVALID field, CONFLICT ids[i] (others wait for it, with dependents: refuse; with atomic it runs and is
--         protected, or has ended otherwise), NOTFOUND ids[i] (with atomic)
-- @conflict it runs, and the settings protect running jobs; force cancels it all the same
-- @flags  drain, function
-- @role   pusher, operator
-- @over   jobs
-- @http   POST /jobs/cancel
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local links = require "jqlua.links.links"
local find = require "jqlua.find.find"
local settings = require "jqlua.settings.settings"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec, selected = find.selection(HEAD)
local takes_running = spec.force or settings.at(settings.CANCEL_RUNNING) ~= 0

--- Why not all of these can be cancelled. Jobs that are cancelled already do not count: the call may be repeated.
---@return string? problem
local function refusal(ids)
  for i, id in ipairs(ids) do
    local job, path = jobs.read(id), "ids[" .. i - 1 .. "]"
    local state = job and job[jobs.STATE]
    if not job then
      return check.missing(path, "job", id)
    elseif state == states.RUNNING and not takes_running then
      return "CONFLICT " .. path .. ": it runs, and running jobs are not to be cancelled: " .. id
    elseif states.is_of(state, "kde") then
      return "CONFLICT " .. path .. ": it has ended (" .. states.name(state) .. "): " .. id
    end
  end
end

if spec.atomic then
  check.refuse(spec.where and "INVALID atomic: only valid with ids" or refusal(spec.ids))
end
if spec.dependents == "refuse" then
  check.refuse(spec.where and "INVALID dependents: expected leave or cancel with where" or links.refusal(spec.ids))
end
links.tree[1] = spec.dependents == "cancel"

local reply, changed = find.each(selected, takes_running and states.UNENDED or states.WAITING, function(job)
  local before = job[jobs.STATE]
  if before == states.RUNNING and not takes_running then
    return "CONFLICT"
  elseif not states.is_of(before, states.UNENDED) then
    return states.name(before)
  end
  if before == states.RUNNING then
    job[jobs.HOW] = jobs.TAKEN
  end
  transition.stop(job, states.CANCELLED)
  return states.name(before), true
end)
trail.note_jobs("cancel", spec, selected, changed)
transition.commit()
return reply
