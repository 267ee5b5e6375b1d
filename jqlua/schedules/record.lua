---@lazy
-- What is kept of a schedule. While a job of it is on its way to the partition that it belongs to (module
-- links.onward), its moments wait: so that it is one at a time, and what it made is counted when that one has answered.
local due = require "jqlua.base.due"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

-- Of so many jobs that it made last it knows the ids.
M.MOST_RUNS = 20

---@return table? of {s fields as given, a argument, m made, n next_ms, l last_ms, i last_id, r ids of its last jobs,
---  w moment whose job is on its way}
function M.load(id)
  local raw = call("HGET", keys.SCHEDULES, id)
  return raw and cmsgpack.unpack(raw) or nil
end

--- When it is to be looked at.
---@return number
function M.due_ms(of)
  return not of.w and of.n or meta.NONE
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

--- A job that was on its way is there, or is not to be.
---@param moment table {id of the schedule, at_ms, whether it is beside its moments}
---@param job_id string
---@param created number 0 or 1
function M.arrived(moment, job_id, created)
  local id, at_ms, is_beside = unpack(moment)
  local of = M.load(id)
  if not of or not is_beside and of.w ~= at_ms then
    return
  end
  if created == 1 then
    M.note_made(of, job_id, not is_beside and at_ms or nil)
  end
  if not is_beside then
    of.w = nil
    of.n = not M.is_used_up(of) and of.n or nil
  end
  M.enter(of)
end

return M
