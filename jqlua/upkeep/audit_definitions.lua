-- Audit of what operators have defined: schedules, keys of the HTTP API, webhooks.
local keys = require "jqlua.base.keys"
local due = require "jqlua.base.due"
local findings = require "jqlua.upkeep.findings"
local meta = require "jqlua.base.meta"
local registry = require "jqlua.webhooks.registry"
local schedules = require "jqlua.schedules.schedules"

local M = {}

local call = redis.call
local expect = findings.expect

local function check_schedule(id)
  local schedule = schedules.load(id)
  if not schedule then
    return expect(false, "schedule", id, "has no record")
  end
  local noted = tonumber(call("ZSCORE", keys.DUE, due.SCHEDULE .. id) or meta.NONE)
  expect(schedule.s.id == id, "schedule", id, "has the record of", schedule.s.id)
  findings.expect_bound("schedule " .. id, noted, schedules.due_ms(schedule))
  expect(not (schedule.n and schedule.s.paused), "schedule", id, "is paused and has a next moment")
end

--- Records and their ids must be as many.
local function check_ids(what, records_key, ids_key)
  local records, ids = call("HLEN", records_key), call("ZCARD", ids_key)
  expect(records == ids, "there are", records, what, "and", ids, "ids of them")
end

function M.check()
  check_ids("schedules", keys.SCHEDULES, keys.SCHEDULE_IDS)
  for _, id in ipairs(findings.members(keys.SCHEDULE_IDS)) do
    check_schedule(id)
  end
  check_ids("keys of the API", keys.API_KEYS, keys.API_KEY_IDS)
  for _, id in ipairs(call("HKEYS", keys.API_KEY_USES)) do
    expect(call("HEXISTS", keys.API_KEYS, id) == 1, "key", id, "of the API was used and is not there")
  end
  expect(meta.has(meta.HAS_WEBHOOKS) == (registry.all()[1] ~= nil), "meta has a wrong flag of webhooks")
  for _, id in ipairs(call("HKEYS", keys.WEBHOOK_SECRETS)) do
    expect(registry.find(id), "secrets are of webhook", id, "which is not there")
  end
end

return M
