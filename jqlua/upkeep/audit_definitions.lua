-- Audit of what operators have defined: schedules, keys of the HTTP API, webhooks.
local keys = require "jqlua.base.keys"
local due = require "jqlua.base.due"
local meta = require "jqlua.base.meta"
local registry = require "jqlua.webhooks.registry"
local schedules = require "jqlua.schedules.schedules"

local M = {}

local call = redis.call

-- Of more schedules, the first are checked.
local MOST = 2000

local function report(problems, ...)
  problems[#problems + 1] = table.concat({ ... }, " ")
end

local function check_one(id, problems)
  local schedule = schedules.load(id)
  if not schedule then
    return report(problems, "schedule", id, "has no record")
  end
  local due_ms = schedules.due_ms(schedule)
  local noted = tonumber(call("ZSCORE", keys.DUE, due.SCHEDULE .. id) or nil)
  if schedule.s.id ~= id then
    report(problems, "schedule", id, "has the record of", schedule.s.id)
  elseif due_ms ~= meta.NONE and (not noted or noted > due_ms) then
    report(problems, "schedule", id, "is due at", due_ms, "and is noted as due at", noted or "no time")
  elseif schedule.n and schedule.s.paused then
    report(problems, "schedule", id, "is paused and has a next moment")
  end
end

local function check_schedules(problems)
  local records, ids = call("HLEN", keys.SCHEDULES), call("ZCARD", keys.SCHEDULE_IDS)
  if records ~= ids then
    report(problems, "there are", records, "schedules and", ids, "ids of schedules")
  end
  for _, id in ipairs(call("ZRANGE", keys.SCHEDULE_IDS, 0, MOST - 1)) do
    check_one(id, problems)
  end
end

local function check_keys(problems)
  local records, ids = call("HLEN", keys.API_KEYS), call("ZCARD", keys.API_KEY_IDS)
  if records ~= ids then
    report(problems, "there are", records, "keys of the API and", ids, "ids of them")
  end
  for _, id in ipairs(call("HKEYS", keys.API_KEY_USES)) do
    if call("HEXISTS", keys.API_KEYS, id) == 0 then
      report(problems, "key", id, "of the API was used and is not there")
    end
  end
end

local function check_webhooks(problems)
  if meta.has(meta.HAS_WEBHOOKS) ~= (registry.all()[1] ~= nil) then
    report(problems, "meta has a wrong flag of webhooks")
  end
  for _, id in ipairs(call("HKEYS", keys.WEBHOOK_SECRETS)) do
    if not registry.find(id) then
      report(problems, "secrets are of webhook", id, "which is not there")
    end
  end
end

function M.check(problems)
  check_schedules(problems)
  check_keys(problems)
  check_webhooks(problems)
end

return M
