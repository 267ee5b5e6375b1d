local space = require "support.space"

describe("retry", function()
  local jq = space.each()

  local function retry(...)
    return jq:call("retry", { ids = { ... } })
  end

  --- A job that failed for good.
  local function failed(spec, more, blob)
    spec = spec or {}
    spec.name, spec.max_retry = spec.name or "a", 0
    local id = jq:enqueue(spec)
    jq:fail(jq:take(spec.name), more, blob)
    return id
  end

  describe("of a job that failed for good", function()
    it("forgets its failures, not its attempts", function()
      local id = jq:enqueue({ name = "a", max_retry = 1 })
      jq:fail(jq:take("a"))
      jq:pass(2)
      jq:fail(jq:take("a"))
      assert.are.equal("error", jq:status(id))
      retry(id)
      local job = jq:take("a")
      assert.are.equal(0, job.retry_count)
      assert.are.equal(3, job.attempt)
      assert.are.equal("retrying", jq:fail(job))
    end)
  end)
  describe("with where", function()
    --- Goes on from call to call; gives how many jobs were retried, and in how many calls.
    local function change(where, more, each)
      local spec, changed, calls = space.with({ where = where }, more), 0, 0
      repeat
        local reply = jq:call("retry", spec)
        spec.cursor, changed, calls = reply[1], changed + reply[2], calls + 1
        if each then
          each()
        end
      until spec.cursor == "" or calls == 1000
      return changed, calls
    end
    it("looks at 100 at most in a call", function()
      jq:cancel(jq:enqueue("a"))
      local ids = jq:enqueue_many({ name = "b" }, 350)
      jq:call("cancel", { ids = ids })
      local reply = jq:call("retry", { where = {} })
      assert.is_true(reply[2] <= 100 and reply[2] > 90)
      local changed, calls = change({})
      assert.are.equal(351, reply[2] + changed)
      assert.is_true(calls <= 4)
    end)
    it("meets each once, though what it retries fails again meanwhile", function()
      for _, where in ipairs({ {}, { tag = "t" }, { group = "other" } }) do
        local count = 7
        for _ = 1, count do
          failed({ tags = { "t" } })
        end
        jq:pass(1)
        local changed = change(where, { count = 2 }, function()
          jq:pass(1)
          for _, job in ipairs(jq:pick({ queues = "a", count = 10 })) do
            jq:fail(job)
          end
        end)
        assert.are.equal(count, changed)
        jq:call("retry", { where = {} })
        jq:call("discard", { where = {} })
      end
    end)
  end)
end)
