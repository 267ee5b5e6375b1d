-- Indexes of lanes: those of a queue that may start, and those that a key of a constraint holds in a queue.
--
-- An index orders lanes by their head's (priority, id). An entry is a lower bound: a head that left the lane
-- leaves its entry behind, which is repaired when it is read and another lane may come before what is the head now. A
-- lane may have several entries, which a repair merges.
--
-- In a fair queue an index holds groups, one for each value, and each group has an index of lanes. Groups of equal
-- priority are ordered by virtual start: the later of the queue's clock and the end of what they were given last. Both
-- only grow, so that again an entry is a lower bound.
--
-- Members: start (8 bytes, 0 for lanes), number in the id (14, a lower bound), kind, digest of the lane or group (20).
local keys = require "jqlua.base.keys"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

-- Kinds of members.
local LANE = "l"
local GROUP = "g"
local NO_START = "\0\0\0\0\0\0\0\0"
local FORGET_TURNS_S = 86400

--- The key of an index, or of what it has of a group.
function M.node(index, group)
  return group == "" and index or keys.GROUP .. group .. index:sub(#KEYS[1] + 1)
end

-- Clock and finishes of a queue's groups, for each priority of its own.
local function turns_key(name, priority)
  return keys.TURNS .. string.format("%d:", priority) .. name
end

---@return number virtual start of a group's next job
local function start_of(turns, group)
  local scores = call("ZMSCORE", turns, "clock", group)
  return math.max(tonumber(scores[1] or 0), tonumber(scores[2] or 0))
end

--- The key of a lane's jobs, to be read: buffered writes to it are sent first.
function M.jobs_key(lane)
  local key = keys.LANE .. lane
  batch.flush_key(key)
  return key
end

---@return boolean
function M.has_jobs(lane)
  return call("EXISTS", M.jobs_key(lane)) == 1
end

--- Adds a lane to an index.
---@param name string the queue
---@param group string its group's digest, or ""
function M.put(index, name, priority, id, lane, group)
  id = queues.bound(id)
  -- A parked lane returns with the priority that its head had when it was parked.
  call("ZADD", M.node(index, group), "LT", priority, NO_START .. id .. LANE .. lane)
  if group ~= "" then
    call("ZADD", index, "LT", priority,
      struct.pack(">d", start_of(turns_key(name, priority), group)) .. id .. GROUP .. group)
  end
end

--- Adds a lane that may start.
function M.add(queue, priority, id, lane, group)
  M.put(keys.LANES .. queue[queues.NAME], queue[queues.NAME], priority, id, lane, group)
  queues.set(queue, queues.LANED)
  queues.note_head(queue, priority, id)
end

--- Removes the entry of a lane from an index.
---@param place table as returned by M.first
function M.remove(index, place)
  call("ZREM", M.node(index, place.group), place.member)
end

--- Removes a lane whose head leaves from those that may start.
---@return boolean # whether it was among them
function M.withdraw(queue, id, lane, group)
  local node = M.node(keys.LANES .. queue[queues.NAME], group)
  return call("ZREM", node, NO_START .. queues.bound(id) .. LANE .. lane) == 1
end

--- The first lane of an index, or of what it has of a group.
---@param entries string[] its first two, with scores
local function place_of(entries, group)
  local member = entries[1]
  local place = {
    queue = false, priority = tonumber(entries[2]), id = member:sub(9, 22), member = member, lane = member:sub(24),
    group = group, bound_priority = meta.NONE, bound_id = "", rival = false, job = false, keys = false,
    argument = false, is_single = false,
  }
  local behind = entries[3]
  if behind then
    place.bound_priority, place.rival = tonumber(entries[4]), behind:sub(24)
    place.bound_id = behind:sub(23, 23) == LANE and behind:sub(9, 22) or queues.LEAST_ID
  end
  return place
end

--- The first lane of an index, by its entry. Repairs entries of groups on the way.
---@return table? place as of pick.places: priority and id of the entry, member, lane, group, what is behind it as
--- bound, rival: the lane behind it if any; the caller fills in the rest
---@return boolean? is_more if the search was cut short
function M.first(index, name)
  repeat
    local entries = call("ZRANGE", index, "0", "1", "WITHSCORES")
    local member, priority = entries[1], tonumber(entries[2])
    if not member then
      return nil
    elseif member:sub(23, 23) == LANE then
      return place_of(entries, "")
    end
    local group = member:sub(24)
    entries = call("ZRANGE", M.node(index, group), "0", "1", "WITHSCORES")
    local place, true_member = entries[1] and place_of(entries, group), nil
    if place then
      local start = start_of(turns_key(name, place.priority), group)
      true_member = struct.pack(">d", start) .. place.id .. GROUP .. group
      if place.priority == priority and true_member == member then
        return place
      end
    end
    call("ZREM", index, member)
    if place then
      call("ZADD", index, place.priority, true_member)
    end
  until not budget.pay(budget.LOOK)
  return nil, true
end

--- The weight of a value: of a text, or of a number's text.
local function weight_of(name, value)
  local weight = value:find("^[sidh]") and call("HGET", keys.WEIGHTS .. name, value:sub(2))
  return tonumber(weight or 1)
end

--- Counts a turn of a lane's group, of which a job starts.
---@param value string of the group
function M.serve(queue, place, value)
  local name, priority, group = queue[queues.NAME], place.priority, place.group
  local turns = turns_key(name, priority)
  local start = start_of(turns, group)
  call("ZADD", turns, start, "clock", start + 1 / weight_of(name, value), group)
  -- A group behind the clock starts at the clock.
  call("ZREMRANGEBYSCORE", turns, "-inf", "(" .. string.format("%.17g", start))
  call("EXPIRE", turns, FORGET_TURNS_S)
  -- The next job may have a smaller id than this one.
  queues.note_head(queue, priority, queues.LEAST_ID)
end

--- A lower bound of the queue's lanes.
---@return number? priority
function M.least_priority(queue)
  return rank.first_score(keys.LANES .. queue[queues.NAME])
end

--- How many jobs the lanes of an index have.
---@param counted table to fill: {lanes, jobs, first: digest of the first lane or false, digest -> true}
---@param most number of entries to read
---@return number left of them
function M.count(index, most, counted)
  for _, member in ipairs(most > 0 and call("ZRANGE", index, "0", most - 1) or {}) do
    most = most - 1
    local digest = member:sub(24)
    if not counted[digest] then -- a group may still have entries of former first jobs
      counted[digest] = true
      if member:sub(23, 23) == GROUP then
        most = M.count(M.node(index, digest), most, counted)
      else
        local jobs = call("ZCARD", M.jobs_key(digest))
        if jobs > 0 then -- empty lanes keep their entry until it is read
          counted.lanes, counted.jobs, counted.first = counted.lanes + 1, counted.jobs + jobs, counted.first or digest
        end
      end
    end
    if most <= 0 then
      break
    end
  end
  return most
end

--- The digest of the group of a value.
---@param generation string|number distinguishes groups of the same value after a change of the path
function M.group_of(queue_name, generation, value)
  return redis.sha1hex(queue_name .. "\0" .. generation .. "\0" .. value):sub(1, job_units.DIGEST)
end

return M
