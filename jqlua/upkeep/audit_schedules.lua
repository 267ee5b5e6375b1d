-- Audit of schedules: ids and records agree, and each with a next time is due by then.
local keys = require "jqlua.base.keys"
local due = require "jqlua.base.due"
local meta = require "jqlua.base.meta"
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
    report(problems, "schedule", id, "has no record")
    return
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

function M.check(problems)
  local records, ids = call("HLEN", keys.SCHEDULES), call("ZCARD", keys.SCHEDULE_IDS)
  if records ~= ids then
    report(problems, "there are", records, "schedules and", ids, "ids of schedules")
  end
  for _, id in ipairs(call("ZRANGE", keys.SCHEDULE_IDS, 0, MOST - 1)) do
    check_one(id, problems)
  end
end

return M
