-- Writes of one call, buffered so that a batch costs one command for each kind and key. No code reads from Redis
-- what is still buffered here.
local M = {}

local call = redis.call

-- unpack() of some thousands of values fails in Redis.
local CHUNK = 4000

---@drained
M.writes = {} -- key, value, key, value, ...
---@drained
M.adds = {} -- key of a sorted set -> {score, member, score, member, ...}
---@drained
M.removals = {} -- key of a sorted set -> {member, ...}; UNWANTED -> keys to remove

---@drained
-- [1]: a call wrote much. A library then makes all tables anew: what grew would stay so, and each call would search it.
M.large = {}

local UNWANTED = ""
local MANY = 64

---@kept
-- The last score formatted, and its text.
local printed = { 0, "0" }

--- Adds a member to a sorted set.
---@param score number whole
function M.add(key, score, member)
  if score ~= printed[1] then
    -- Redis would print a number with 17 digits, at three times the cost.
    printed[1], printed[2] = score, string.format("%d", score)
  end
  score = printed[2]
  local list = M.adds[key]
  if not list then
    M.adds[key] = { score, member }
  else
    local n = #list
    list[n + 1], list[n + 2] = score, member
  end
end

--- Sets a string.
function M.write(key, value)
  local writes = M.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = key, value
end

function M.remove(key, member)
  local list = M.removals[key]
  if not list then
    M.removals[key] = { member }
  else
    list[#list + 1] = member
  end
end

--- Deletes a key.
function M.unlink(key)
  M.remove(UNWANTED, key)
end

local function send_long(command, key, list)
  for first = 1, #list, CHUNK do
    local last = math.min(first + CHUNK - 1, #list)
    if key then
      call(command, key, unpack(list, first, last))
    else
      call(command, unpack(list, first, last))
    end
  end
end

--- Sends the buffered additions to one sorted set, before it is read.
function M.flush_key(key)
  local list = M.adds[key]
  if list then
    M.adds[key] = nil
    send_long("ZADD", key, list)
  end
end

--- Sends all buffered writes.
function M.flush()
  local writes = M.writes
  if writes[1] then
    if #writes <= CHUNK then
      call("MSET", unpack(writes))
    else
      send_long("MSET", nil, writes)
    end
    if #writes > MANY then
      M.large[1] = true
    end
    for i = #writes, 1, -1 do
      writes[i] = nil
    end
  end
  for key, list in next, M.removals do
    M.removals[key] = nil
    if key == UNWANTED then
      send_long("UNLINK", nil, list)
    elseif #list <= CHUNK then
      call("ZREM", key, unpack(list))
    else
      send_long("ZREM", key, list)
    end
  end
  for key, list in next, M.adds do
    M.adds[key] = nil
    if #list <= CHUNK then
      call("ZADD", key, unpack(list))
    else
      send_long("ZADD", key, list)
    end
  end
end

return M
