---@lazy
-- Notifications: jobs that masters carry to the URLs of webhooks. They are made by the call in which a job ends, for
-- its own URL and for each webhook that matches it.
local batch = require "jqlua.base.writes"
local budget = require "jqlua.job.budget"
local constraint = require "jqlua.limits.constraint"
local job = require "jqlua.job.record"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queue = require "jqlua.queue.record"
local registry = require "jqlua.webhooks.registry"
local serial = require "jqlua.base.serial"
local states = require "jqlua.job.states"

local M = {}

local MAX_RETRY = 20
local LEASE_MS = 30000
local NIL = "\192"

-- Why jobs fail that do so next.
local why = {}

--- The next job that ends fails for this reason.
---@param message string its beginning
function M.explain(reason, message, group)
  why.reason, why.message, why.group = reason, message, group
end

--- What is told of an end.
local function event(of, to)
  local told = {
    id = of[job.ID], name = of[job.NAME], queue = of[job.QUEUE], status = states.name(to), attempt = of[job.ATTEMPT],
    retry_count = of[job.FAILURES], created_ms = job.created_ms(of[job.ID]), ended_ms = meta.state[meta.NOW_MS],
  }
  if of[job.ATTEMPT] > 0 then
    told.started_ms = of[job.STARTED_MS]
  end
  if to == states.ERROR then
    told.reason, told.message, told.group = why.reason, why.message, why.group
  end
  return told
end

--- A job that carries a notification, due now. It is to be entered into its queue.
local function new(target)
  local owner, now = queue.load(queue.WEBHOOKS), meta.state[meta.NOW_MS]
  local id = serial.next()
  local of = {
    0, states.SCHEDULED, job.NOT_YET, 0, 0, 0, 0, queue.WEBHOOKS, queue.WEBHOOKS, 0, MAX_RETRY, LEASE_MS,
    cmsgpack.pack({ webhook = target }), "", "", id, "", false,
  }
  job.hold(of)
  job.save(of)
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.ARGUMENT .. id, NIL
  queue.note_due(owner, queue.DUE_WAITING, now)
  budget.pay(budget.STEP)
  return of
end

--- The notifications of a job that ends. Of the end of one nobody is told.
---@param to string letter
---@return table[] jobs
function M.of(moved, to)
  local options, made = job.given(moved), {}
  if options.webhook then
    return made
  end
  local told
  if options.notify then
    told = event(moved, to)
    made[1] = new({ url = options.notify, event = told })
  end
  local letter = to == states.KEPT and states.DONE or to
  local facts
  for _, hook in ipairs(meta.has(meta.HAS_WEBHOOKS) and registry.all() or {}) do
    if hook.o:find(letter, 1, true) then
      facts = facts or constraint.facts(moved)
      if constraint.is_match(hook, facts, moved) then
        told = told or event(moved, to)
        made[#made + 1] = new({ id = hook.i, event = told })
      end
    end
  end
  return made
end

return M
