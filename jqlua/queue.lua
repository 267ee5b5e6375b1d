-- A queue's record: whether it is paused, its limit, and lower bounds that keep the common job from paying for
-- indexes: of its due moments (module due) and of its best waiting job (its entry in the index of queues).
-- The bound of the best job only moves when something better comes in, or when a pick over many queues looks
-- at the entry and finds that the job has gone (module picker).
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local due = require "jqlua.due"
local glob = require "jqlua.glob"

local M = {}

local call = redis.call
local FORMAT = ">BI4ddddc14"
local NO_ID = "              "

-- Records this script has looked at, by name.
local open = {}

local function fresh(name)
  return {
    name = name, is_new = true, paused = 0, max_waiting = 0,
    r = meta.NONE, w = meta.NONE, e = meta.NONE, head_priority = meta.NONE, head_id = NO_ID,
  }
end

--- The record of a queue; for an unknown one, a fresh record that commit creates.
---@param name string
---@return table
function M.load(name)
  local queue = open[name]
  if queue then
    return queue
  end
  local raw = call("HGET", keys.QUEUES, name)
  if raw then
    local paused, max_waiting, r, w, e, head_priority, head_id = struct.unpack(FORMAT, raw)
    queue = {
      name = name, paused = paused, max_waiting = max_waiting,
      r = r, w = w, e = e, head_priority = head_priority, head_id = head_id,
    }
  else
    queue = fresh(name)
  end
  open[name] = queue
  return queue
end

--- The next moment of one kind is at_ms or earlier.
function M.note_due(queue, kind, at_ms)
  if at_ms < queue[kind] then
    queue[kind] = at_ms
    queue.changed = true
    due.note(kind .. queue.name, at_ms)
  end
end

--- A job came in: the bound of the best one may have to move down.
function M.note_head(queue, priority, id)
  local best = queue.head_priority
  if priority < best or (priority == best and id < queue.head_id) then
    M.set_head(queue, priority, id)
  end
end

local function patterns_of(name)
  local found = {}
  for _, pattern in ipairs(call("HKEYS", keys.PATTERNS)) do
    if glob.match(pattern, name) then
      found[#found + 1] = pattern
    end
  end
  return found
end

---@cold
--- Moves the queue's entry in the indexes it belongs to.
---@param priority number meta.NONE for no entry
function M.set_head(queue, priority, id)
  if queue.paused ~= 0 then
    priority = meta.NONE
  end
  local member = queue.head_id .. queue.name
  for _, pattern in ipairs(patterns_of(queue.name)) do
    if queue.head_priority ~= meta.NONE then
      call("ZREM", keys.HEADS .. pattern, member)
    end
    if priority ~= meta.NONE then
      call("ZADD", keys.HEADS .. pattern, priority, id .. queue.name)
    end
  end
  queue.head_priority = priority
  queue.head_id = priority ~= meta.NONE and id or NO_ID
  queue.changed = true
end

--- Writes the records that changed.
function M.save()
  for name, queue in pairs(open) do
    if queue.changed then
      call("HSET", keys.QUEUES, name, struct.pack(FORMAT, queue.paused, queue.max_waiting, queue.r, queue.w,
        queue.e, queue.head_priority, queue.head_id))
      if queue.is_new then
        call("ZADD", keys.QUEUE_NAMES, 0, name)
        queue.is_new = false
      end
      queue.changed = false
    end
  end
end

--- Jobs of a queue that are to start: they count against max_waiting.
function M.waiting(name)
  local total = 0
  for letter in ("qstb"):gmatch(".") do
    total = total + call("ZCARD", keys.SET .. letter .. ":" .. name)
  end
  return total
end

return M
