-- Takes units of keys when a job starts, and gives them back when it stops running. Parks lanes on a key while it is
-- closed, per queue, in order.
--
-- Always true: if a key is open and holds lanes of a queue, then the queue's index (module limits.lane_index) has a
-- lane of this key that is no worse than they. So a key that opens sends its best lane of each queue, and a lane that
-- leaves the index, or takes its best job from it, sends the next for every key of its that is open. In a fair queue a
-- turn makes other lanes worse, too: there, keys that are open send one more at every start.
local budget = require "jqlua.job.budget"
local keyrecord = require "jqlua.limits.keyrecord"
local keys = require "jqlua.base.keys"
local lane_index = require "jqlua.limits.lane_index"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local room = require "jqlua.limits.room"
local job_units = require "jqlua.limits.job_units"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- So many keys send more lanes when a job of a fair queue starts.
local MOST_SENT = 1000

--- The index of the lanes that a key holds in a queue.
---@param key_name string
---@param name string of the queue
function M.index(key_name, name)
  return keys.PARKED .. #key_name .. ":" .. key_name .. name
end

--- Returns the best lane that a key holds in a queue to the queue's index.
---@return boolean? # whether the index of those that it holds there is still there; nil if the search was cut short
local function send(key, name)
  local index = M.index(key.name, name)
  local first, is_more
  repeat
    first, is_more = lane_index.first(index, name)
    if is_more or not budget.pay(budget.LOOK) then
      return keyrecord.look_at(key, meta.state[meta.NOW_MS]) -- the next call continues
    elseif not first then
      return false
    end
    lane_index.remove(index, first)
    -- Lanes may have lost their last job while they were held.
  until lane_index.has_jobs(first.lane)
  local queue = queues.load(name)
  lane_index.add(queue, first.priority, first.id, first.lane, first.group)
  queue[queues.REOPENED] = true
  if first.group ~= "" then
    call("SADD", keys.SENT .. name, key.name)
  end
  return call("EXISTS", index) == 1
end

--- Schedules a check of a key for when it opens, if that is a matter of time.
local function note_opening(key)
  if not room.is_full(key) then
    keyrecord.look_at(key, room.closed_until(key))
  end
end

--- Sends the best lane that a key holds in a queue, if the key is open.
---@return boolean # whether it is open, and held any there
local function send_to(key, name)
  local packed = keyrecord.packed(name)
  local at = room.is_open(key) and string.find(key.queues, packed, 1, true)
  if at and send(key, name) == false then
    key.queues = key.queues:sub(1, at - 1) .. key.queues:sub(at + #packed)
    key.is_changed = true
  end
  return at and true or false
end

--- After a key may have opened: sends its best lane of each queue, as far as the call's budget goes. Queues that hold
--- more go to the end of the list, and how much of it is left is noted as a moment before all others.
---@param left? number bytes of the list, where a call before has begun
function M.reopen(key, left)
  local list, at, kept = key.queues, 1, {}
  if list ~= "" and not room.is_open(key) then
    return note_opening(key)
  end
  local last = math.min(left or #list, #list)
  while at <= last and (at == 1 or budget.pay(budget.RECORD)) do
    local name, behind = struct.unpack(keyrecord.QUEUE, list, at)
    local is_kept = send(key, name)
    if is_kept == nil then
      break
    end
    kept[#kept + 1], at = is_kept and list:sub(at, behind - 1) or nil, behind
  end
  key.queues = list:sub(at) .. table.concat(kept)
  key.is_changed = key.is_changed or key.queues ~= list
  if at <= last then
    keyrecord.look_at(key, at - 1 - last)
  end
end

--- After a lane of these keys left its queue's index, or has a worse position there: if they have room, sends their
--- next lanes.
---@param lane_keys table[] keys
---@param except? table key
function M.pass_on(queue, lane_keys, except)
  for i = 1, #lane_keys do
    local key = lane_keys[i]
    if key ~= except and key.queues ~= "" then
      send_to(key, queue[queues.NAME])
    end
  end
end

--- After a turn of a group in a fair queue, which makes all its lanes worse: keys may have better lanes than those that
--- they sent.
function M.send_more(queue)
  local name = queue[queues.NAME]
  for _, key_name in ipairs(call("SRANDMEMBER", keys.SENT .. name, MOST_SENT)) do
    local key = keyrecord.load_named(key_name)
    if not send_to(key, name) then
      call("SREM", keys.SENT .. name, key_name)
    end
  end
end

--- Whether any of these keys holds lanes.
---@param lane_keys table[] keys
---@return boolean
function M.holds_any(lane_keys)
  for i = 1, #lane_keys do
    if lane_keys[i].queues ~= "" then
      return true
    end
  end
  return false
end

--- Parks a lane until a key opens.
---@param key table without room
---@param lane table as returned by lane_index.first
function M.park(queue, key, lane)
  local name = queue[queues.NAME]
  local index = M.index(key.name, name)
  if call("EXISTS", index) == 0 then -- otherwise the queue stands in the list, which may be long
    key.queues = key.queues .. keyrecord.packed(name)
    key.is_changed = true
  end
  lane_index.put(index, name, lane.priority, lane.id, lane.lane, lane.group)
  note_opening(key)
end

--- Checks a key again after its constraint's limits changed or it was removed.
function M.review(key)
  budget.pay(budget.STEP)
  key.opens_ms = 0
  key.is_changed = true
  M.reopen(key)
end

--- Closes a key until then, or opens it.
function M.hold(key, until_ms)
  key.hold_ms = until_ms
  if until_ms <= meta.state[meta.NOW_MS] then
    key.hold_ms, key.opens_ms = 0, 0
  end
  key.is_changed = true
  M.reopen(key)
end

--- Checks keys that are due.
---@return number sent
---@return boolean is_behind whether there are more
function M.sweep(most)
  local now = meta.state[meta.NOW_MS]
  local due_keys = call("ZRANGEBYSCORE", keys.OPENING, "-inf", now, "WITHSCORES", "LIMIT", 0, most)
  local sent = 0
  for i = 1, #due_keys, 2 do
    local name, at_ms = due_keys[i], tonumber(due_keys[i + 1])
    call("ZREM", keys.OPENING, name)
    local key = keyrecord.load_named(name)
    key.timer_ms = 0
    key.is_changed = true
    M.reopen(key, at_ms < 0 and -at_ms or nil)
    sent = sent + 1
    if not budget.pay(budget.STEP) or key.timer_ms < 0 then
      return sent, true
    end
  end
  return sent, sent == most
end

--- Takes a unit of each of a starting job's keys.
---@param job_keys table[] keys with room
function M.take(job_keys)
  for i = 1, #job_keys do
    local key = job_keys[i]
    if key.limit then
      key.in_use, key.is_changed = key.in_use + 1, true
      if key.limit.rate > 0 then
        room.note_start(key)
      end
    end
  end
end

--- Gives back the units of a job that stops running; one that waited has none. It waits in no lane then. A constraint
--- that was removed counts nothing any more.
function M.leave(job)
  local units = job_units.of(job)
  if not units then
    return
  end
  if job[jobs.STATE] == states.RUNNING then
    local job_keys = keyrecord.of(units[job_units.ENTRIES])
    for i = 1, #job_keys do
      local key = job_keys[i]
      if key.limit then
        key.in_use, key.is_changed = key.in_use - 1, true
        M.reopen(key)
      end
    end
  end
  job_units.put(job, nil)
end

return M
