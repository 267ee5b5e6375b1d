-- Bulk operations: an operation on all jobs that `where` selects, however many, run in steps by the master that holds
-- it. The steps are calls of the operation itself. The record says what to do, how far it is, and which master holds it
-- until when: another continues if that one dies.
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local serial = require "jqlua.base.serial"

local M = {}

local call = redis.call

-- Its holder has it for so long; each step renews that.
local HELD_MS = 10000
local KEPT_MS = 3600000
local MOST_OPEN = 20
local MOST = 100

---@return table? bulk {id, what, where, cursor, changed, total, begun_ms, actor, force, dependents, queue, holder,
--- until_ms, resumed, ended_ms, problem, stopped}
function M.load(id)
  local raw = call("HGET", keys.BULKS, id)
  return raw and cmsgpack.unpack(raw) or nil
end

local function save(bulk)
  call("HSET", keys.BULKS, bulk.id, cmsgpack.pack(bulk))
  return bulk
end

--- All of them, the latest first, without those that ended over an hour ago.
function M.all()
  local list = {}
  for _, raw in ipairs(call("HVALS", keys.BULKS)) do
    local bulk = cmsgpack.unpack(raw)
    if not bulk.ended_ms or bulk.ended_ms > meta.state[meta.NOW_MS] - KEPT_MS then
      list[#list + 1] = bulk
    end
  end
  table.sort(list, function(a, b)
    return a.id > b.id
  end)
  return list
end

--- Drops ended ones, so that at most a hundred are left.
local function drop_old(list)
  local kept = {}
  for i, bulk in ipairs(list) do
    if not bulk.ended_ms or i < MOST then
      kept[bulk.id] = true
    end
  end
  for _, id in ipairs(call("HKEYS", keys.BULKS)) do
    if not kept[id] then
      call("HDEL", keys.BULKS, id)
    end
  end
end

--- Begins a bulk operation.
---@param spec table what to do: what, where, total, force, dependents, queue, actor
---@return table bulk
function M.begin(spec)
  local bulk = {}
  for field, value in pairs(spec) do
    bulk[field] = value
  end
  local list, open = M.all(), 0
  for _, other in ipairs(list) do
    if not other.ended_ms then
      open = open + 1
      check.refuse(other.where.queue == bulk.where.queue
        and "CONFLICT where.queue: bulk operation " .. other.id .. " is running "
        .. (bulk.where.queue and "on jobs of " .. check.show(bulk.where.queue) or "on jobs of all queues"))
    end
  end
  check.refuse(open >= MOST_OPEN and "FULL where: " .. MOST_OPEN .. " bulk operations are running, the limit")
  drop_old(list)
  bulk.id, bulk.begun_ms = "t" .. serial.next(), meta.state[meta.NOW_MS]
  bulk.changed, bulk.cursor, bulk.resumed, bulk.stopped = 0, "", 0, false
  return save(bulk)
end

--- Ends a bulk operation.
function M.finish(bulk, is_stopped, why)
  bulk.ended_ms, bulk.stopped, bulk.problem = meta.state[meta.NOW_MS], is_stopped, why
  return save(bulk)
end

--- Records a step by its holder; the first master to do so becomes the holder.
---@param step table {holder, cursor?, changed?, ended?, problem?}
function M.step(bulk, step)
  local now = meta.state[meta.NOW_MS]
  check.refuse(bulk.ended_ms and "CONFLICT id: it has ended")
  if bulk.holder and bulk.holder ~= step.holder then
    check.refuse(bulk.until_ms > now and "CONFLICT id: another master runs it")
    bulk.resumed = bulk.resumed + 1
  end
  bulk.holder, bulk.until_ms = step.holder, now + HELD_MS
  bulk.cursor, bulk.changed = step.cursor or bulk.cursor, bulk.changed + (step.changed or 0)
  if step.ended then
    return M.finish(bulk, false, step.problem)
  end
  return save(bulk)
end

---@return string document all but who holds it
function M.document(bulk)
  bulk.holder = nil
  return cmsgpack.pack(bulk)
end

return M
