-- Begins, steps or stops a bulk operation, which does something to all jobs that fit a description.
--
-- A server carries it on, however many they are.
--
-- @arg    what        discard|cancel|retry?  begins one: what to do
-- @arg    where       Where?              which jobs
-- @arg    total       integer? 0..1e15    how many there may be, for showing progress
-- @arg    force       flag?               with cancel: running jobs, too
-- @arg    dependents  leave|cancel?       with cancel: what to do with jobs that wait for them
-- @arg    queue       queue?              with retry: the queue to move them to
-- @arg    id          name?               the bulk to step or stop
-- @arg    stop        flag?               with id: stop it
-- @arg    holder      name?               with id: who carries it out
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
-- @http   POST /bulk
local arguments = require "jqlua.base.arguments"
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local bulks = require "jqlua.upkeep.bulks"
local transition = require "jqlua.life.transition"
local filter = require "jqlua.find.filter"

local spec = arguments.spec(HEAD)
local bulk
if not spec.id then
  fields.refuse(spec, "holder cursor changed ended problem stop", "only valid with id")
  check.refuse(not spec.what and "INVALID what: expected discard, cancel or retry, got nothing")
  check.refuse(not spec.where and "INVALID where: expected a map of conditions, got nothing")
  filter.parse(spec.where)
  if spec.what ~= "cancel" then
    fields.refuse(spec, "force dependents", "only valid with what cancel")
  end
  check.refuse(spec.what ~= "retry" and spec.queue and "INVALID queue: only valid with what retry")
  bulk = bulks.begin(spec)
else
  fields.refuse(spec, "what where total force dependents queue", "only a call that begins one has it")
  if spec.stop then
    fields.refuse(spec, "holder cursor changed ended problem", "a call with stop has none")
  else
    check.refuse(not spec.holder and check.problem("holder", check.NAME, nil))
  end
  bulk = bulks.load(spec.id)
  check.refuse(not bulk and check.missing("id", "bulk operation", spec.id))
  if not spec.stop then
    bulks.step(bulk, spec)
  elseif not bulk.ended_ms then
    bulks.finish(bulk, true)
  end
end
transition.commit()
return bulks.document(bulk)
