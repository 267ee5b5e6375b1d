-- Cancels jobs.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids, force?, dependents?, atomic?, actor?} or {where, cursor?, count?, force?, dependents?,
--        actor?}
-- Reply  for each job the state it was in, or NOTFOUND, or CONFLICT (it runs, and running jobs are not to be cancelled)
--        with where {cursor, changed}
-- Errors INVALID field, CONFLICT ids[i] (others wait for it, with dependents: refuse; with atomic it runs and is not to
--        be cancelled, or has ended otherwise), NOTFOUND ids[i] (with atomic)
-- Cost   with where, some milliseconds at most; with ids, each of them
-- Flags: drain, function
local arguments = require "jqlua.base.arguments"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local links = require "jqlua.links.links"
local selection = require "jqlua.find.selection"
local settings = require "jqlua.settings.settings"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec, selected = selection.spec("force dependents atomic")
if not spec then
  return redis.error_reply(selected)
end
for _, field in ipairs({ "force", "atomic" }) do
  if spec[field] ~= nil and type(spec[field]) ~= "boolean" then
    return redis.error_reply(check.problem(field, "true or false", spec[field]))
  end
end
local takes_running = spec.force or settings.at(settings.CANCEL_RUNNING) ~= 0

---@cold
--- Why not all of these can be cancelled. Those that are cancelled already stand in nobody's way: the call may be
--- repeated.
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

local problem = arguments.check_choice("dependents", spec.dependents, "leave cancel refuse")
if spec.atomic and not problem then
  problem = spec.where and "INVALID atomic: only valid with ids" or refusal(spec.ids)
end
if spec.dependents == "refuse" and not problem then
  problem = spec.where and "INVALID dependents: expected leave or cancel with where" or links.refusal(spec.ids)
end
if problem then
  return redis.error_reply(problem)
end
links.tree[1] = spec.dependents == "cancel"

local reply, changed = selection.each(selected, takes_running and states.UNENDED or states.WAITING, function(job)
  local before = job[jobs.STATE]
  if before == states.RUNNING and not takes_running then
    return "CONFLICT"
  elseif not states.is_of(before, states.UNENDED) then
    return states.name(before)
  end
  if before == states.RUNNING then
    job[jobs.HOW] = jobs.TAKEN
  end
  job[jobs.ENDED_MS] = meta.state[meta.NOW_MS]
  if transition.move(job, states.CANCELLED, meta.state[meta.NOW_MS]) then
    jobs.save(job)
  end
  return states.name(before), true
end)
trail.note_jobs("cancel", spec, changed)
transition.commit()
return reply
