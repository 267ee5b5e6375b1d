-- Writes of one call, buffered so that a batch costs one command for each kind and key. No code reads from Redis
-- what is still buffered here.
local M = {}

local call = redis.call

-- unpack() of some thousands of values fails in Redis.
local CHUNK = 4000

---@drained
M.writes = {} -- key, value, key, value, ...
---@drained
M.adds = {} -- key of a sorted set -> {key, score, member, score, member, ...}
---@drained
M.removals = {} -- key of a sorted set -> {key, member, ...}
---@drained
M.unwanted = {} -- keys to remove

---@drained
-- [1]: a call wrote much. A library then makes all tables anew: what grew would stay so, and each call would search it.
M.large = {}

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
  local list = M.adds[key]
  if not list then
    M.adds[key] = { key, printed[2], member }
  else
    local n = #list
    list[n + 1], list[n + 2] = printed[2], member
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
    M.removals[key] = { key, member }
  else
    list[#list + 1] = member
  end
end

--- Deletes a key.
function M.unlink(key)
  local list = M.unwanted
  list[#list + 1] = key
end

---@param first? string in front of each part: the key of the set
local function send_long(command, list, first)
  for at = first and 2 or 1, #list, CHUNK do
    local last = math.min(at + CHUNK - 1, #list)
    if first then
      call(command, first, unpack(list, at, last))
    else
      call(command, unpack(list, at, last))
    end
  end
end

--- Sends the buffered additions to one sorted set, before it is read.
function M.flush_key(key)
  local list = M.adds[key]
  if list then
    M.adds[key] = nil
    send_long("ZADD", list, key)
  end
end

local function send_keys(command, list)
  if #list <= CHUNK then
    call(command, unpack(list))
  else
    send_long(command, list)
  end
  if #list > MANY then
    M.large[1] = true
  end
  for i = #list, 1, -1 do
    list[i] = nil
  end
end

--- Sends all buffered writes.
function M.flush()
  if M.writes[1] then
    send_keys("MSET", M.writes)
  end
  if M.unwanted[1] then
    send_keys("UNLINK", M.unwanted)
  end
  for key, list in next, M.removals do
    M.removals[key] = nil
    if #list <= CHUNK then
      call("ZREM", unpack(list))
    else
      send_long("ZREM", list, key)
    end
  end
  for key, list in next, M.adds do
    M.adds[key] = nil
    if #list <= CHUNK then
      call("ZADD", unpack(list))
    else
      send_long("ZADD", list, key)
    end
  end
end

return M
