-- Indexes of lanes: those of a queue that may start, and those that a key of a constraint holds in a queue.
--
-- An index orders lanes by their head's (priority, id). An entry is a lower bound: a head that left the lane
-- leaves its entry behind, which is repaired when it is read and another lane may come before what is the head now. A
-- lane may have several entries, which a repair merges.
--
-- In a fair queue an index holds groups, one for each value, and each group has an index like the first.
-- Groups of equal priority are ordered by virtual start: the later of the clock of their node and the end of what they
-- were given last. Both only grow, so that again an entry is a lower bound.
--
-- Members: start (8 bytes, 0 for lanes), number in the id (14, a lower bound), kind, digest of the lane or group (20).
local keys = require "jqlua.base.keys"
local batch = require "jqlua.base.batch"
local budget = require "jqlua.job.budget"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call

-- Kinds of members.
local LANE = "l"
local GROUP = "g"
local NO_START = "\0\0\0\0\0\0\0\0"
local FORGET_TURNS_S = 86400

--- The key of an index, or of its part at a path of groups.
function M.node(index, path)
  return path == "" and index or keys.GROUP .. path:sub(-job_units.DIGEST) .. ":" .. index
end

-- Clock and finishes of the groups at a path, for each priority of its own.
local function turns_key(name, path, priority)
  local group = path ~= "" and "g" .. path:sub(-job_units.DIGEST)
  return keys.TURNS .. string.format("%d:", priority) .. (group or "q" .. name)
end

---@return number virtual start of a group's next job
local function start_of(turns, group)
  local scores = call("ZMSCORE", turns, "clock", group)
  return math.max(tonumber(scores[1] or 0), tonumber(scores[2] or 0))
end

---@param name string the queue
---@return string the index of its lanes that may start
function M.of_queue(name)
  return keys.LANES .. name
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

--- Adds entries of groups, from the innermost on.
local function add_groups(index, name, priority, id, path, last)
  while last > 0 do
    local parent, group = path:sub(1, last - job_units.DIGEST), path:sub(last - job_units.DIGEST + 1, last)
    local start = struct.pack(">d", start_of(turns_key(name, parent, priority), group))
    call("ZADD", M.node(index, parent), "LT", priority, start .. id .. GROUP .. group)
    last = last - job_units.DIGEST
  end
end

--- Adds a lane to an index.
---@param name string the queue
---@param rest string the lane's digest and the path of its groups
function M.put(index, name, priority, id, rest)
  id = queues.bound(id)
  local path = rest:sub(job_units.DIGEST + 1)
  -- A parked lane returns with the priority that its head had when it was parked.
  call("ZADD", M.node(index, path), "LT", priority, NO_START .. id .. LANE .. rest:sub(1, job_units.DIGEST))
  if path ~= "" then
    add_groups(index, name, priority, id, path, #path)
  end
end

--- Adds a lane that may start.
---@param queue table
function M.add(queue, priority, id, rest)
  M.put(M.of_queue(queue[queues.NAME]), queue[queues.NAME], priority, id, rest)
  queues.set(queue, queues.LANED)
  queues.note_head(queue, priority, id)
end

--- Resets the ids of outer groups' entries, since the next job of an inner group may have a smaller id than theirs.
local function unsettle(index, name, priority, path)
  if #path > job_units.DIGEST then
    add_groups(index, name, priority, queues.LEAST_ID, path, #path - job_units.DIGEST)
    if index == M.of_queue(name) then
      queues.note_head(queues.load(name), priority, queues.LEAST_ID)
    end
  end
end

--- Removes the entry of a lane from an index.
---@param place table as returned by M.first
function M.remove(index, name, place)
  call("ZREM", M.node(index, place.path), place.member)
  unsettle(index, name, place.priority, place.path)
end

--- Removes a lane whose head leaves from those that may start.
---@return boolean # whether it was among them
function M.withdraw(queue, priority, id, lane, path)
  local name = queue[queues.NAME]
  local index = M.of_queue(name)
  if call("ZREM", M.node(index, path), NO_START .. queues.bound(id) .. LANE .. lane) == 0 then
    return false
  end
  unsettle(index, name, priority, path)
  return true
end

--- The first lane of a node. Repairs entries of groups on the way.
local function first_of(index, name, path)
  local at = M.node(index, path)
  while budget.is_left() do
    local entries = call("ZRANGE", at, 0, 1, "WITHSCORES")
    local member, priority = entries[1], tonumber(entries[2])
    if not member then
      return nil
    end
    if member:sub(23, 23) == LANE then
      local place = {
        queue = false, priority = priority, id = member:sub(9, 22), member = member, lane = member:sub(24), path = path,
        bound_priority = meta.NONE, bound_id = "", rival = false, job = false, units = false, argument = false,
        is_single = false,
      }
      local behind = entries[3]
      if behind then
        place.bound_priority, place.rival = tonumber(entries[4]), behind:sub(24)
        place.bound_id = behind:sub(23, 23) == LANE and behind:sub(9, 22) or queues.LEAST_ID
      end
      return place
    end
    local digest = member:sub(24)
    local place, is_more = first_of(index, name, path .. digest)
    if is_more then
      return nil, true
    end
    local true_member
    if place then
      local start = start_of(turns_key(name, path, place.priority), digest)
      true_member = struct.pack(">d", start) .. place.id .. GROUP .. digest
      if place.priority == priority and true_member == member then
        return place
      end
    end
    budget.pay(budget.LOOK)
    call("ZREM", at, member)
    if place then
      call("ZADD", at, place.priority, true_member)
    end
  end
  return nil, true
end

--- The first lane of an index, by its entry.
---@return table? place as of pick.places: priority and id of the entry, member, lane, path, what is behind it as bound,
--- rival: the lane behind it if any; the caller fills in the rest
---@return boolean? is_more if the search was cut short
function M.first(index, name)
  return first_of(index, name, "")
end

--- The weight of a value: of a text, or of a number's text.
local function weight_of(name, level, value)
  local weight = value:find("^[sidh]") and call("HGET", keys.WEIGHTS .. name, level .. value:sub(2))
  return tonumber(weight or 1)
end

--- Counts a turn of this lane's groups, of which a job starts.
---@param groups string[] values
function M.serve(queue, place, groups)
  local path, priority, name = place.path, place.priority, queue[queues.NAME]
  for level = 1, #path / job_units.DIGEST do
    local last = level * job_units.DIGEST
    local turns = turns_key(name, path:sub(1, last - job_units.DIGEST), priority)
    local group = path:sub(last - job_units.DIGEST + 1, last)
    local start = start_of(turns, group)
    call("ZADD", turns, start, "clock", start + 1 / weight_of(name, level, groups[level]), group)
    -- A group behind the clock starts at the clock.
    call("ZREMRANGEBYSCORE", turns, "-inf", "(" .. string.format("%.17g", start))
    call("EXPIRE", turns, FORGET_TURNS_S)
  end
  if path ~= "" then
    -- The next job may have a smaller id than this one.
    queues.note_head(queue, priority, queues.LEAST_ID)
  end
end

--- A lower bound of the queue's lanes.
---@return number? priority
function M.least_priority(queue)
  return tonumber(call("ZRANGE", M.of_queue(queue[queues.NAME]), 0, 0, "WITHSCORES")[2])
end

--- How many jobs the lanes of an index have.
---@param counted table to fill: {lanes, jobs, first: digest of the first lane or false, digest -> true}
---@param most number of entries to read
---@return number left of them
function M.count(index, path, most, counted)
  for _, member in ipairs(call("ZRANGE", M.node(index, path), 0, most - 1)) do
    if most <= 0 then
      break
    end
    most = most - 1
    local digest = member:sub(24)
    local is_group = member:sub(23, 23) == GROUP
    local what = is_group and path .. digest or digest
    if not counted[what] and is_group then -- it may still have entries of former first jobs
      counted[what] = true
      most = M.count(index, what, most, counted)
    elseif not counted[what] then
      counted[what] = true
      local jobs = call("ZCARD", M.jobs_key(digest))
      if jobs > 0 then -- empty lanes keep their entry until it is read
        counted.lanes, counted.jobs, counted.first = counted.lanes + 1, counted.jobs + jobs, counted.first or digest
      end
    end
  end
  return most
end

--- The path of the groups of these values.
---@return string
---@param generation string|number distinguishes groups of the same values after a change of levels
function M.path_of(queue_name, generation, values)
  local path, before = "", queue_name .. "\0" .. generation
  for _, value in ipairs(values) do
    before = redis.sha1hex(before .. "\0" .. #value .. ":" .. value):sub(1, job_units.DIGEST)
    path = path .. before
  end
  return path
end

return M
