---@lazy
-- What is kept of a schedule.
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

-- Of so many jobs that it made last it knows the ids.
M.MOST_RUNS = 20

---@return table? of {s fields as given, a argument, m made, n next_ms, l last_ms, i last_id, r ids of its last jobs}
function M.load(id)
  local raw = call("HGET", keys.SCHEDULES, id)
  return raw and cmsgpack.unpack(raw) or nil
end

--- When it is to be looked at.
---@return number
function M.due_ms(of)
  return of.n or meta.NONE
end

--- Writes the record, and where it stands in the due set.
function M.save(of)
  local id = of.s.id
  call("HSET", keys.SCHEDULES, id, cmsgpack.pack(of))
  due.set(due.SCHEDULE .. id, M.due_ms(of))
end

--- The same where a moment may come that was not waited for. Sleepers may have to know.
function M.enter(of)
  M.save(of)
  local due_ms = M.due_ms(of)
  if due_ms ~= meta.NONE then
    due.note(due.SCHEDULE .. of.s.id, due_ms)
  end
end

function M.is_used_up(of)
  return of.m >= (of.s.limit or math.huge)
end

--- A job of it is there.
---@param at_ms? number its moment; nil where it is beside those
function M.note_made(of, id, at_ms)
  of.r = of.r or {}
  of.r[#of.r + 1] = id
  if #of.r > M.MOST_RUNS then
    table.remove(of.r, 1)
  end
  if at_ms then
    of.m, of.l, of.i = of.m + 1, at_ms, id
  end
end

return M
