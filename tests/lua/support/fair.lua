-- What specs of fair queues do again and again.
local msgpack = require "support.msgpack"
local space = require "support.space"

---@return function fair(sharing) makes queue q fair
---@return function enqueue(letters, more) jobs in it, one for each letter: "AAB" is two of A and one of B; their ids
---@return function letters(count, queues) the values of the jobs in the order they start, one pick for each
return function(jq)
  local function fair(sharing)
    return jq:queue({ name = "q", fair = sharing })
  end
  local function enqueue(letters, more)
    local ids = {}
    for letter in letters:gmatch(".") do
      ids[#ids + 1] = jq:enqueue(space.with({ name = "job", queue = "q" }, more), { v = letter })
    end
    return ids
  end
  local function letters(count, queues)
    local started = ""
    for _ = 1, count or 1000 do
      local job = jq:start_one(queues or "q")
      if not job then
        break
      end
      started = started .. msgpack.unpack(job.blob).v
    end
    return started
  end
  return fair, enqueue, letters
end
