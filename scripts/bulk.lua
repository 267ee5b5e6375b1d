-- Begins, steps or stops a bulk operation, which does something to all jobs that fit a description.
--
-- A server carries it on, however many they are.
--
-- @arg    what        discard|cancel|retry?  begins one: what is done
-- @arg    where       Where?              to which jobs
-- @arg    total       integer? 0..1e15    how many there may be, to show how far it is
-- @arg    force       flag?               with cancel: running jobs, too
-- @arg    dependents  leave|cancel?       with cancel: what becomes of jobs that wait for them
-- @arg    queue       queue?              with retry: where they wait from now on
-- @arg    id          name?               one that has begun
-- @arg    stop        flag?               with id: it ends where it is
-- @arg    holder      name?               with id: who carries it on
-- @arg    cursor      cursor?             where the next step goes on
-- @arg    changed     integer? 0..1000    how many jobs the last step has changed
-- @arg    ended       flag?               there is nothing left
-- @arg    problem     text? 0..1000       why it ended early
-- @arg    actor       actor?
-- @reply  Bulk
-- @errors INVALID field, NOTFOUND id, CONFLICT where.queue, CONFLICT id, FULL where
-- @flags  write
-- @role   operator
-- @role   server with holder
-- @over   first
-- @http   POST /bulks (what!, where!, total, force, dependents, queue)
-- @http   POST /bulk/{id}/stop (stop=true)
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local moving = require "jqlua.life.moving"
local bulks = require "jqlua.upkeep.bulks"
local transition = require "jqlua.life.transition"
local filter = require "jqlua.find.filter"

local MOST_CURSOR, MOST_PROBLEM = 255, 1000

local FIELDS = "what where total force dependents queue id holder cursor changed ended problem stop"

local spec = arguments.operators(FIELDS)

--- Rejects fields that are not valid with the others.
local function unwanted(names, why)
  for name in names:gmatch("%S+") do
    if spec[name] ~= nil then
      return "INVALID " .. name .. ": " .. why
    end
  end
end

local function check_begin()
  local wrong = unwanted("holder cursor changed ended problem stop", "only valid with id")
    or spec.what == nil and "INVALID what: expected one of discard, cancel, retry, got nothing"
    or arguments.check_choice("what", spec.what, "discard cancel retry")
    or spec.where == nil and "INVALID where: expected a map of conditions, got nothing"
  local _
  if not wrong then
    _, wrong = filter.parse(spec.where)
  end
  if wrong then
    return wrong
  elseif spec.total ~= nil and not check.is_integer(spec.total, 0, 1e15) then
    return check.problem("total", "an integer from 0 to 10^15", spec.total)
  elseif spec.what ~= "cancel" and (spec.force ~= nil or spec.dependents ~= nil) then
    return "INVALID " .. (spec.force ~= nil and "force" or "dependents") .. ": only valid with what cancel"
  elseif spec.what ~= "retry" and spec.queue ~= nil then
    return "INVALID queue: only valid with what retry"
  elseif spec.force ~= nil and type(spec.force) ~= "boolean" then
    return check.problem("force", "true or false", spec.force)
  end
  local expected = spec.queue ~= nil and moving.check_queue(spec.queue)
  return expected and check.problem("queue", expected, spec.queue)
    or arguments.check_choice("dependents", spec.dependents, "leave cancel")
end

local function check_step()
  local wrong = unwanted("what where total force dependents queue", "only a call that begins one has it")
  if wrong or spec.stop ~= nil then
    wrong = wrong or unwanted("holder cursor changed ended problem", "a call with stop has none")
    return wrong or spec.stop ~= true and check.problem("stop", "true", spec.stop)
  elseif not check.is_name(spec.holder) then
    return check.problem("holder", check.NAME, spec.holder)
  elseif spec.cursor ~= nil and (type(spec.cursor) ~= "string" or #spec.cursor > MOST_CURSOR) then
    return check.problem("cursor", "a cursor of at most " .. MOST_CURSOR .. " bytes", spec.cursor)
  elseif spec.changed ~= nil and not check.is_integer(spec.changed, 0, 1000) then
    return check.problem("changed", "an integer from 0 to 1000", spec.changed)
  elseif spec.ended ~= nil and type(spec.ended) ~= "boolean" then
    return check.problem("ended", "true or false", spec.ended)
  elseif spec.problem ~= nil and (type(spec.problem) ~= "string" or #spec.problem > MOST_PROBLEM) then
    return check.problem("problem", "a text of at most " .. MOST_PROBLEM .. " bytes", spec.problem)
  end
end

local bulk, problem
if spec.id == nil then
  problem = check_begin()
  if not problem then
    bulk, problem = bulks.begin({
      what = spec.what, where = spec.where, total = spec.total, force = spec.force, dependents = spec.dependents,
      queue = spec.queue, actor = spec.actor,
    })
  end
else
  problem = not check.is_name(spec.id) and check.problem("id", check.NAME, spec.id) or check_step()
  local known = not problem and bulks.load(spec.id)
  if not problem and not known then
    problem = check.missing("id", "bulk operation", spec.id)
  elseif not problem and spec.stop then
    bulk = known.ended_ms and known or bulks.finish(known, true)
  elseif not problem then
    bulk, problem = bulks.step(known, spec)
  end
end
check.refuse(not bulk and problem)
transition.commit()
return bulks.document(bulk)
