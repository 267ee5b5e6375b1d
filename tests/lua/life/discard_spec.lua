local space = require "support.space"

describe("discard", function()
  local jq = space.each()

  local function discard(...)
    return jq:call("discard", { ids = { ... } })
  end

  --- A job of each state but running.
  local function one_of_each()
    local ids = {}
    ids.cancelled = jq:enqueue({ name = "a", tags = { "t" } })
    jq:cancel(ids.cancelled)
    ids.done = jq:enqueue({ name = "a", tags = { "t" } })
    jq:succeed(jq:take("a"))
    ids.kept = jq:enqueue({ name = "a", keep_result = true })
    jq:succeed(jq:take("a"))
    ids.error = jq:enqueue({ name = "a", max_retry = 0, tags = { "t" } })
    jq:fail(jq:take("a"))
    ids.retrying = jq:enqueue("a")
    jq:fail(jq:take("a"))
    ids.scheduled = jq:enqueue({ name = "a", delay = 100 })
    ids.queued = jq:enqueue({ name = "a", unique = "u", expires_in = 100, tags = { "t", "u" } })
    ids.blocked = jq:enqueue({ name = "a", depends = { ids.queued } })
    return ids
  end
  it("leaves nothing of a job behind", function()
    jq:set({ trail_max = 0 })
    local empty = jq:keys()
    local ids = one_of_each()
    discard(ids.blocked)
    ids.blocked = nil
    for name, id in pairs(ids) do
      discard(id)
      for _, key in ipairs(jq:keys()) do
        assert.is_falsy(key:find(id, 1, true), name .. " left " .. key)
      end
    end
    jq:settle()
    jq:call("forget", { name = "a" })
    local left = jq:keys()
    for _, key in ipairs(empty) do
      for i, other in ipairs(left) do
        if key == other then
          table.remove(left, i)
        end
      end
    end
    for _, key in ipairs(left) do
      local name = key:sub(#jq.name + 1)
      assert.is_truthy(name:find("^:seq") or name:find("^:log") or name:find("^:stats"), key)
    end
  end)
end)
