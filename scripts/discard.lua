-- Takes jobs away with their records. Those that wait are cancelled before.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids, actor?} or {where, cursor?, count?, actor?}
-- Reply  for each job the state it had, or NOTFOUND, or CONFLICT (it runs); with where {cursor, changed}
-- Errors INVALID field
-- Cost   with where, some milliseconds at most; with ids, each of them
-- Flags: drain
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local removal = require "jqlua.job.removal"
local selection = require "jqlua.find.selection"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec, selected = selection.spec()
if not spec then
  return redis.error_reply(selected)
end
local unwanted, seen = {}, {}
local reply, changed = selection.each(selected, "qwsbtkdecn", function(job)
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
trail.note_jobs("discard", spec, changed)
transition.commit()
return reply
