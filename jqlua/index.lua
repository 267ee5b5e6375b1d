-- Changes to sorted sets, gathered so that a batch costs one command for each set.
local keys = require "jqlua.keys"

local M = {}

local call = redis.call
local adds = {}
local removals = {}

-- unpack() of some thousands of values fails in Redis.
local CHUNK = 2000

function M.add(key, score, member)
  local list = adds[key]
  if not list then
    adds[key] = { score, member }
  else
    local n = #list
    list[n + 1], list[n + 2] = score, member
  end
end

function M.remove(key, member)
  local list = removals[key]
  if not list then
    removals[key] = { member }
  else
    list[#list + 1] = member
  end
end

local function send(command, lists)
  for key, list in pairs(lists) do
    lists[key] = nil
    local n = #list
    if n <= CHUNK then
      call(command, key, unpack(list))
    else
      for first = 1, n, CHUNK do
        call(command, key, unpack(list, first, math.min(first + CHUNK - 1, n)))
      end
    end
  end
end

--- Sends what was gathered. Nothing reads these sets before.
function M.flush()
  send("ZREM", removals)
  send("ZADD", adds)
end

---@param letter string of the state
---@param queue string name
---@return string key of the set of a queue's jobs in that state
function M.key(letter, queue)
  return keys.SET .. letter .. ":" .. queue
end

return M
