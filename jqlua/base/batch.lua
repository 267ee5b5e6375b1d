-- Writes of one call, buffered so that a batch costs one command for each kind and key. No code reads from Redis
-- what is still buffered here.
local M = {}

local call = redis.call

-- unpack() of some thousands of values fails in Redis: a list that has so many is sent before the others.
local MOST = 4000

M.writes = KEPT -- key, value, key, value, ...
M.unwanted = KEPT -- keys to remove
M.adds = KEPT -- key of a sorted set -> {score, member, score, member, ...}
M.removals = KEPT -- key of a sorted set -> {member, ...}

-- The last score formatted, and its text.
local printed = { 0, "0" }

--- Adds members with the same score to a sorted set.
---@param score number whole
---@param members string[] a member, anything, a member, anything, ...
---@param first number index of the first in it
---@param last number
function M.add_all(key, score, members, first, last)
  if score ~= printed[1] then
    -- Redis would print a number with 17 digits, at three times the cost.
    printed[1], printed[2] = score, string.format("%d", score)
  end
  local list, text = M.adds[key], printed[2]
  if not list then
    list = { text, members[first] }
    M.adds[key], first = list, first + 2
  end
  if first <= last then
    local n = #list
    for i = first, last, 2 do
      list[n + 1], list[n + 2] = text, members[i]
      n = n + 2
    end
    if n > MOST then
      M.flush()
    end
  end
end

--- Adds a member to a sorted set.
---@param score number whole
function M.add(key, score, member)
  M.add_all(key, score, { member }, 1, 1)
end

--- Sets a string, or two.
---@param other_key? string
function M.write(key, value, other_key, other_value)
  local list = M.writes
  local n = #list
  list[n + 1], list[n + 2] = key, value
  if other_key then
    list[n + 3], list[n + 4] = other_key, other_value
  end
  if n > MOST then
    M.flush()
  end
end

function M.remove(key, member)
  local list = M.removals[key]
  if not list then
    M.removals[key] = { member }
    return
  end
  local n = #list
  list[n + 1] = member
  if n > MOST then
    M.flush()
  end
end

--- Deletes a key.
function M.unlink(key)
  local list = M.unwanted
  local n = #list
  list[n + 1] = key
  if n > MOST then
    M.flush()
  end
end

--- Sends the buffered additions to one sorted set, before it is read.
function M.flush_key(key)
  local list = M.adds[key]
  if list then
    M.adds[key] = nil
    call("ZADD", key, unpack(list))
  end
end

local function send(command, list)
  call(command, unpack(list))
  for i = #list, 1, -1 do
    list[i] = nil
  end
end

---@return boolean # whether nothing is buffered
function M.is_empty()
  return not (M.writes[1] or M.unwanted[1] or next(M.adds) or next(M.removals))
end

--- Sends all buffered writes.
function M.flush()
  if M.writes[1] then
    send("MSET", M.writes)
  end
  if M.unwanted[1] then
    send("UNLINK", M.unwanted)
  end
  for key, list in next, M.removals do
    M.removals[key] = nil
    call("ZREM", key, unpack(list))
  end
  for key, list in next, M.adds do
    M.adds[key] = nil
    call("ZADD", key, unpack(list))
  end
end

return M
