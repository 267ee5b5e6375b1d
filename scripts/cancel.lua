-- Cancels jobs.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids, force?, dependents?, actor?} or {where, cursor?, count?, force?, dependents?,
--        actor?}
-- Reply  for each job the state it was in, or NOTFOUND, or CONFLICT (it runs, and running jobs are not to be cancelled)
--        with where {cursor, changed}
-- Errors INVALID field, CONFLICT ids[i] (others wait for it, with dependents: refuse)
-- Cost   with where, some milliseconds at most; with ids, each of them
-- Flags: drain, function
local arguments = require "jqlua.base.arguments"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local links = require "jqlua.links.links"
local selection = require "jqlua.find.selection"
local settings = require "jqlua.settings.settings"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec, problem = arguments.operators("ids where cursor count force dependents")
if not spec then
  return redis.error_reply(problem)
end
local selected
selected, problem = selection.parse(spec)
if not selected then
  return redis.error_reply(problem)
end
if spec.force ~= nil and type(spec.force) ~= "boolean" then
  return redis.error_reply(check.problem("force", "true or false", spec.force))
end
problem = arguments.check_choice("dependents", spec.dependents, "leave cancel refuse")
if spec.dependents == "refuse" and not problem then
  problem = spec.where and "INVALID dependents: with where, leave or cancel" or links.refusal(spec.ids)
end
if problem then
  return redis.error_reply(problem)
end
links.tree[1] = spec.dependents == "cancel"

local takes_running = spec.force or settings.at(settings.CANCEL_RUNNING) ~= 0
local reply, changed = selection.each(selected, takes_running and states.UNENDED or states.WAITING, function(of)
  local before = of[job.STATE]
  if before == states.RUNNING and not takes_running then
    return "CONFLICT"
  elseif not states.is_of(before, states.UNENDED) then
    return states.name(before)
  end
  if before == states.RUNNING then
    of[job.HOW] = job.TAKEN
  end
  of[job.ENDED_MS] = meta.state[meta.NOW_MS]
  if transition.move(of, states.CANCELLED, meta.state[meta.NOW_MS]) then
    job.save(of)
  end
  return states.name(before), true
end)
trail.note_jobs("cancel", spec, changed)
transition.commit()
return reply
