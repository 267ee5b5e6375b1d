---@lazy
-- Bulk operations: what is to be done to all jobs that fit a description, however many, carried on in steps by whoever
-- holds it: a master. The steps are calls of the operation itself. Here stands what is to be done, how far it is, and
-- who sees to it until when: another goes on where one died.
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local serial = require "jqlua.base.serial"

local M = {}

local call = redis.call

-- For so long it is its holder's; each step begins it anew.
local HELD_MS = 10000
local KEPT_MS = 3600000
local MOST_OPEN = 20
local MOST = 100

---@return table? of {id, what, where, cursor, changed, total, begun_ms, actor, force, dependents, queue, holder,
--- until_ms, resumed, ended_ms, problem, is_stopped}
function M.load(id)
  local raw = call("HGET", keys.BULKS, id)
  return raw and cmsgpack.unpack(raw) or nil
end

local function save(of)
  call("HSET", keys.BULKS, of.id, cmsgpack.pack(of))
  return of
end

--- All of them, the latest first; those that ended an hour ago are left out.
function M.all()
  local list = {}
  for _, raw in ipairs(call("HVALS", keys.BULKS)) do
    local of = cmsgpack.unpack(raw)
    if not of.ended_ms or of.ended_ms > meta.state[meta.NOW_MS] - KEPT_MS then
      list[#list + 1] = of
    end
  end
  table.sort(list, function(a, b)
    return a.id > b.id
  end)
  return list
end

--- Drops what ended, so that a hundred are left at most.
local function drop_old(list)
  local kept = {}
  for i, of in ipairs(list) do
    if not of.ended_ms or i < MOST then
      kept[of.id] = true
    end
  end
  for _, id in ipairs(call("HKEYS", keys.BULKS)) do
    if not kept[id] then
      call("HDEL", keys.BULKS, id)
    end
  end
end

--- Begins one.
---@param of table what is to be done
---@return table? of
---@return string? problem
function M.begin(of)
  local list, open = M.all(), 0
  for _, other in ipairs(list) do
    if not other.ended_ms then
      open = open + 1
      if other.where.queue == of.where.queue then
        return nil, "CONFLICT where.queue: bulk operation " .. other.id .. " is under way "
          .. (of.where.queue and "with jobs of " .. check.show(of.where.queue) or "with jobs of all queues")
      end
    end
  end
  if open >= MOST_OPEN then
    return nil, "FULL where: " .. MOST_OPEN .. " bulk operations are under way"
  end
  drop_old(list)
  of.id, of.begun_ms, of.changed, of.cursor, of.resumed = "t" .. serial.next(), meta.state[meta.NOW_MS], 0, "", 0
  return save(of)
end

--- Ends one.
function M.finish(of, is_stopped, why)
  of.ended_ms, of.is_stopped, of.problem = meta.state[meta.NOW_MS], is_stopped, why
  return save(of)
end

--- Its holder says how far it is; who says so first holds it.
---@param said table {holder, cursor?, changed?, ended?, problem?}
---@return table? of
---@return string? problem
function M.step(of, said)
  local now = meta.state[meta.NOW_MS]
  if of.ended_ms then
    return nil, "CONFLICT id: it is over"
  elseif of.holder and of.holder ~= said.holder and of.until_ms > now then
    return nil, "CONFLICT id: another carries it on"
  elseif of.holder and of.holder ~= said.holder then
    of.resumed = of.resumed + 1
  end
  of.holder, of.until_ms = said.holder, now + HELD_MS
  of.cursor, of.changed = said.cursor or of.cursor, of.changed + (said.changed or 0)
  if said.ended then
    return M.finish(of, nil, said.problem)
  end
  return save(of)
end

---@return string document
function M.document(of)
  return cmsgpack.pack({
    id = of.id, what = of.what, where = of.where, cursor = of.cursor, changed = of.changed, total = of.total,
    begun_ms = of.begun_ms, actor = of.actor, force = of.force, dependents = of.dependents, queue = of.queue,
    until_ms = of.until_ms, resumed = of.resumed, ended_ms = of.ended_ms, problem = of.problem,
    stopped = of.is_stopped or false,
  })
end

return M
