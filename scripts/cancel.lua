-- Cancels jobs.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids, force?}
-- Reply  for each job the state it was in, or NOTFOUND, or CONFLICT (it runs, and running jobs are not to be cancelled)
-- Errors INVALID field
-- Flags: drain
local arguments = require "jqlua.arguments"
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local job = require "jqlua.job"
local settings = require "jqlua.settings"
local transition = require "jqlua.transition"

local MOST_IDS = 1000

local spec, problem = arguments.spec("ids force")
if not spec then
  return redis.error_reply(problem)
end
if not check.is_list(spec.ids, 1, MOST_IDS) then
  return redis.error_reply(check.problem("ids", "a list of 1 to " .. MOST_IDS .. " job ids", spec.ids))
end
for i, id in ipairs(spec.ids) do
  if not check.is_id(id) then
    return redis.error_reply(check.problem("ids[" .. i - 1 .. "]", check.ID, id))
  end
end
if spec.force ~= nil and type(spec.force) ~= "boolean" then
  return redis.error_reply(check.problem("force", "true or false", spec.force))
end

local takes_running = spec.force or settings.at(settings.CANCEL_RUNNING) ~= 0
local answers = {}
for i, id in ipairs(spec.ids) do
  local of = job.read(id)
  if not of then
    answers[i] = "NOTFOUND"
  else
    answers[i] = job.state_name(of[job.STATE])
    if of[job.STATE] == "r" and not takes_running then
      answers[i] = "CONFLICT"
    elseif string.find("qwsbrt", of[job.STATE], 1, true) then
      if of[job.STATE] == "r" then
        of[job.HOW] = "c"
      end
      of[job.ENDED_MS] = meta.state[meta.NOW_MS]
      if transition.move(of, "c", meta.state[meta.NOW_MS]) then
        job.save(of)
      end
    end
  end
end
transition.commit()
return answers
