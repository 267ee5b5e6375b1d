-- Removes jobs with their records. Those that wait are cancelled before.
--
-- The reply has for each job the state it had, NOTFOUND, or CONFLICT: it runs.
--
-- @arg    ids     list<job>? 1..1000    the jobs; or
-- @arg    where   Where?                all that match, a step with each call
-- @arg    cursor  cursor?               with where: of the step before
-- @arg    count   integer? 1..1000 = 100  with where: how many to remove, at most
-- @arg    actor   actor?
-- @reply  states jobs
-- @reply  {cursor: cursor, changed: integer} with where
-- @errors INVALID field
-- @conflict it runs; cancel it first
-- @flags  drain
-- @role   operator
-- @over   jobs
-- @http   POST /jobs/discard
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local removal = require "jqlua.life.removal"
local find = require "jqlua.find.find"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec, selected = find.selection(HEAD)
local unwanted, seen = {}, {}
local reply, changed = find.each(selected, "qwsbtkdecn", function(job)
  if seen[job] then
    return "NOTFOUND" -- named twice
  elseif job[jobs.STATE] == states.RUNNING then
    return "CONFLICT"
  end
  seen[job] = true
  unwanted[#unwanted + 1] = job
  return states.name(job[jobs.STATE]), true
end)
removal.discard(unwanted)
trail.note_jobs("discard", spec, selected, changed)
transition.commit()
return reply
