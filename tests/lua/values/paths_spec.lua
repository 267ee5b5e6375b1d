-- An operation of the library is called by FCALL or by EVALSHA, and does the same: one random life is led twice,
-- once in each form, and all is compared.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("functions and scripts #once", function()
  local by_function, by_script
  local digits -- of tokens: what a script made in place of those that a function made
  before_each(function()
    by_function, by_script = space.new({ form = "functions" }), space.new({ form = "scripts" })
    digits = {}
  end)
  after_each(function()
    by_function:close()
    by_script:close()
  end)

  local NAMES = { "a", "b", "worker" }

  --- What an operation answers, with documents decoded.
  local function decoded(value)
    if type(value) == "table" then
      local copy = {}
      for key, inner in pairs(value) do
        copy[key] = decoded(inner)
      end
      return copy
    elseif type(value) == "string" and #value > 20 and value:byte(1) >= 0x80 then
      local ok, document = pcall(msgpack.unpack, value)
      return ok and document or value
    end
    return value
  end

  --- What was said with a function's tokens, with those of scripts.
  local function translated(value)
    if type(value) == "string" then
      return (value:gsub("^(%d+%-)(%x+)$", function(attempt, random)
        return attempt .. (digits[random] or random)
      end))
    elseif type(value) ~= "table" then
      return value
    end
    local copy = setmetatable({}, getmetatable(value))
    for key, inner in pairs(value) do
      copy[key] = translated(inner)
    end
    return copy
  end

  --- Learns which digits stand for which.
  local function note_digits(one, other)
    if type(one) ~= "table" or type(other) ~= "table" then
      return
    end
    if one.token and other.token then
      digits[one.token:match("%-(.*)$")] = other.token:match("%-(.*)$")
    end
    for key, inner in pairs(one) do
      note_digits(inner, other[key])
    end
  end

  --- Calls in both forms; answers what the function said, when the script has said the same.
  local function both(operation, ...)
    local reply = decoded(by_function:call(operation, ...))
    local other = decoded(by_script:call(operation, unpack(translated({ ... }))))
    note_digits(reply, other)
    assert.are.same(other, translated(reply), operation)
    return reply
  end

  local function maybe(value)
    return math.random(3) == 1 and value or nil
  end

  local function enqueue(ids)
    local arguments = {}
    local queue = NAMES[math.random(2)]
    for _ = 1, math.random(1, 4) do
      arguments[#arguments + 1] = {
        name = NAMES[math.random(2)], queue = queue, priority = maybe(math.random(-2, 2)),
        keep_result = maybe(true), timeout = maybe(math.random(1, 60)), max_retry = maybe(math.random(0, 2)),
        delay = math.random(6) == 1 and math.random(0, 9) or nil,
        expires_in = math.random(8) == 1 and math.random(5, 20) or nil,
      }
      arguments[#arguments + 1] = msgpack.pack({ math.random(1000) })
    end
    for _, id in ipairs(space.made(both("enqueue", unpack(arguments)))) do
      ids[#ids + 1] = id
    end
  end

  --- Behind the place of next_ms.
  local function note_picked(held, reply, place)
    for i = place + 1, #reply, 2 do
      held[#held + 1] = reply[i]
    end
  end

  local function pick_spec()
    return { queues = NAMES[math.random(2)], count = maybe(math.random(1, 5)) }
  end

  local function finish(held)
    local arguments = { { worker = "worker", pick = math.random(2) == 1 and pick_spec() or nil } }
    for _ = 1, math.random(1, 3) do
      local job = held[1] and table.remove(held, math.random(#held))
      if job then
        local is_failure = math.random(5) == 1
        arguments[#arguments + 1] = {
          id = job.id, token = math.random(12) == 1 and job.attempt + 1 .. "-" or job.token,
          type = is_failure and "failure" or "success", message = is_failure and "no" or nil,
        }
        arguments[#arguments + 1] = msgpack.pack({ math.random(1000) })
      end
    end
    if #arguments > 1 then
      local reply = both("finish", unpack(arguments))
      note_picked(held, reply, (#arguments - 1) / 2 + 1)
      if math.random(4) == 1 then
        arguments[1].pick = nil
        both("finish", unpack(arguments))
      end
    end
  end

  local function step(ids, held)
    local dice = math.random(12)
    if dice <= 3 then
      enqueue(ids)
    elseif dice <= 5 then
      local spec = pick_spec()
      spec.worker = "worker"
      note_picked(held, both("pick", spec), 1)
    elseif dice <= 8 then
      finish(held)
    elseif dice == 9 and held[1] then
      local job = held[math.random(#held)]
      local named = { worker = "worker", jobs = { { job.id, job.token } } }
      both(math.random(2) == 1 and "heartbeat" or "release", named)
    elseif dice == 10 and ids[1] then
      local id = ids[math.random(#ids)]
      both(math.random(2) == 1 and by_function:get(id) and "result" or "watch", id)
      both("cancel", { ids = { ids[math.random(#ids)] } })
    elseif dice == 11 then
      both("queue", { name = NAMES[math.random(2)], paused = math.random(3) == 1,
        max_waiting = maybe(math.random(0, 1) * 1000) })
    else
      local seconds = math.random(1, 8000) / 1000
      by_function:pass(seconds)
      by_script:pass(seconds)
      both("tick", { limit = math.random(3) })
    end
  end

  -- From the 7th life on, under these constraints: {spec, matcher}.
  local CONSTRAINTS = {
    [7] = { { { id = "c", concurrency = 2 }, { name = "*" } } },
    [8] = { { { id = "c", concurrency = 1, by = { "name", "queue" } }, { name = "*" } } },
    [9] = { { { id = "c", concurrency = 3, by = "priority" }, { ["argument.0"] = { lt = 500 } } } },
    [10] = {
      { { id = "c", concurrency = 2, by = "priority" }, { priority = { ge = -1 } } },
      { { id = "d", concurrency = 4 }, { ["argument.0"] = { ge = 300 } } },
    },
    [11] = { { { id = "c", concurrency = 1000 }, { ["argument.0"] = { exists = true } } } },
    [12] = { { { id = "c", concurrency = 1 }, { priority = 77 } } },
  }

  -- From the 13th life on, the queue a has settings of its own: these.
  local OWN = {
    [13] = { done_max = 0, result_ttl = 3 },
    [14] = { done_ttl = 5, retry_base = 3, retry_jitter = 0 },
    [15] = { done_ttl = 1000, error_max = 10, lease_grace = 5 },
    [16] = { cancelled_ttl = 0, result_grace = 0 },
  }
  CONSTRAINTS[15], CONSTRAINTS[16] = CONSTRAINTS[11], CONSTRAINTS[7]

  --- The keys, without the namespace.
  local function keys(jq)
    local found = {}
    for _, key in ipairs(jq:keys()) do
      local name = key:sub(#jq.name + 1)
      if not name:find("^:at%-") then -- each form has its own
        found[#found + 1] = name
      end
    end
    return found
  end

  for seed = 1, 8 do
    it("lead the same life (" .. seed .. ")", function()
      math.randomseed(seed)
      local ids, held = {}, {}
      for _, constraint in ipairs(CONSTRAINTS[seed] or {}) do
        both("constrain", constraint[1], msgpack.pack(constraint[2]))
      end
      if seed % 3 == 0 then
        both("config", { set = { done_ttl = 0, error_max = 0 } })
      end
      for i = 1, 250 do
        if OWN[seed] and i == 20 then
          both("queue", { name = "a", set = OWN[seed] })
        elseif OWN[seed] and i == 150 then
          both("queue", { name = "a", unset = { "done_max", "done_ttl" } })
        end
        step(ids, held)
      end
      if seed % 3 ~= 0 then
        for first = 1, #ids, 500 do
          both("get", unpack(ids, first, math.min(first + 499, #ids)))
        end
      end
      both("queues", { names = { "a", "b" } })
      both("constraints", {})
      for _, by in ipairs({ "minute", "hour" }) do
        both("stats", { by = by })
        both("stats", { by = by, queue = "a" })
        both("stats", { by = by, name = "b" })
        both("stats", { by = by, queue = "b", name = "worker" })
      end
      assert.are.same(keys(by_script), keys(by_function))
      assert.are.same({}, by_function:audit())
      assert.are.same({}, by_script:audit())
    end)
  end

  it("refuse the same things with nothing changed", function()
    both("enqueue", { name = "a" }, msgpack.NIL)
    for _, jq in ipairs({ by_function, by_script }) do
      for _, field in ipairs({ "priority", "max_retry", "timeout" }) do
        for _, value in ipairs({ -1e15, 1e15, msgpack.NAN, msgpack.INFINITY, "1", true, {} }) do
          jq:refuses("INVALID jobs[1]." .. field, "enqueue", { name = "a" }, msgpack.NIL,
            { name = "a", [field] = value }, msgpack.NIL)
        end
      end
      for _, value in ipairs({ 0, 1001, 1.5, msgpack.NAN, "1" }) do
        jq:refuses("INVALID count", "pick", { worker = "w", queues = "a", count = value })
      end
      for _, value in ipairs({ 0, 1, "1", "0-0123456789ab", "1-x", msgpack.NAN }) do
        jq:refuses("INVALID outcomes[0].token", "finish", { worker = "w" },
          { id = space.UNKNOWN_ID, token = value, type = "success" }, msgpack.NIL)
      end
    end
  end)
end)
