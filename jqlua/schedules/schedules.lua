-- Records of schedules.
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

-- Ids of so many of its last jobs are kept.
M.MOST_RUNS = 20

---@return table? schedule {s fields as given, a argument, m made, n next_ms, l last_ms, i last_id, r ids of last jobs}
function M.load(id)
  local raw = call("HGET", keys.SCHEDULES, id)
  return raw and cmsgpack.unpack(raw) or nil
end

--- When it is due.
---@return number
function M.due_ms(schedule)
  return schedule.n or meta.NONE
end

--- Writes the record and the due time.
function M.save(schedule)
  local id = schedule.s.id
  call("HSET", keys.SCHEDULES, id, cmsgpack.pack(schedule))
  due.set(due.SCHEDULE .. id, M.due_ms(schedule))
end

--- The same, where the due time may be earlier than sleepers were told.
function M.enter(schedule)
  M.save(schedule)
  local due_ms = M.due_ms(schedule)
  if due_ms ~= meta.NONE then
    due.note(due.SCHEDULE .. schedule.s.id, due_ms)
  end
end

function M.is_used_up(schedule)
  return schedule.m >= (schedule.s.limit or math.huge)
end

--- Records a job that the schedule created.
---@param at_ms? number its time; nil if it was created on request
function M.note_made(schedule, id, at_ms)
  schedule.r = schedule.r or {}
  schedule.r[#schedule.r + 1] = id
  if #schedule.r > M.MOST_RUNS then
    table.remove(schedule.r, 1)
  end
  if at_ms then
    schedule.m, schedule.l, schedule.i = schedule.m + 1, at_ms, id
  end
end

return M
