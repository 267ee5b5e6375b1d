-- Shows and changes a queue: pauses it, resumes it, limits it, gives it settings of its own.
--
-- One that is not there yet is created, so that it can be paused or limited before its first job; `known` refuses it.
--
-- @arg    name         queue
-- @arg    paused       flag?            a paused queue takes jobs and starts none
-- @arg    max_waiting  integer? 0..4294967295  limit of waiting jobs; 0: none
-- @arg    fair         Fair?           the values of a path take turns; {}: no more
-- @arg    set          OwnSettings?     settings of its own
-- @arg    unset        list<text>? 0..100  settings to reset to the namespace's
-- @arg    known        flag? = false    only a queue that is there: NOTFOUND otherwise
-- @arg    actor        actor?
-- @reply  Queue
-- @errors INVALID field, NOTFOUND name (with known)
-- @flags  write
-- @role   operator
-- @over   all
-- @http   POST /queue/{name}
local arguments = require "jqlua.base.arguments"
local meta = require "jqlua.base.meta"
local fairness = require "jqlua.life.fairness"
local check = require "jqlua.base.check"
local queues = require "jqlua.queue.queues"
local placement = require "jqlua.life.placement"
local queue_status = require "jqlua.find.queue_status"
local settings = require "jqlua.settings.settings"
local settingspec = require "jqlua.settings.settingspec"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

local spec = arguments.spec(HEAD)
local fair = fairness.parse(spec.fair)
local queue = queues.load(spec.name)
local own = settings.own(queue)
settingspec.change(spec, true, own)

if queue[queues.IS_NEW] then
  check.refuse(spec.known and check.missing("name", "queue", spec.name))
  queue[queues.CHANGED] = true
end
if spec.max_waiting then
  queue[queues.MAX_WAITING] = spec.max_waiting
  queue[queues.CHANGED] = true
end
if spec.paused and queue[queues.PAUSED] == 0 then
  queue[queues.PAUSED] = 1
  queues.set_head(queue, meta.NONE)
elseif spec.paused == false and queue[queues.PAUSED] ~= 0 then
  queue[queues.PAUSED] = 0
  queue[queues.CHANGED] = true
  local priority, id = placement.least(queue)
  if priority then
    queues.set_head(queue, priority, id)
    queue[queues.REOPENED] = true
  end
end
if fair then
  fairness.set(queue, fair)
end
if spec.set or spec.unset then
  settings.save_own(queue, own)
  queues.recheck_due(queue)
end
if spec.paused ~= nil or spec.max_waiting or fair or spec.set or spec.unset then -- otherwise it only reads
  trail.note("queue", spec.name, spec)
end
transition.commit()
return queue_status.encode(queue)
