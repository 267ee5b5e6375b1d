local msgpack = require "support.msgpack"
local space = require "support.space"

describe("finish", function()
  local jq = space.each()
  local function taken(spec)
    jq:enqueue(spec or "a")
    return jq:take("a")
  end

  describe("a success", function()
    it("counts when the lease ran out and nobody has found that yet", function()
      local job = taken({ name = "a", timeout = 1 })
      jq:pass(2)
      assert.are.equal("done", jq:succeed(job))
    end)
  end)

  it("of a job does not start it again with the token of the pick that gave it", function()
    jq:enqueue("a")
    local job = jq:take({ queues = "a", request = "always the same" })
    local reply = jq:call("finish", { worker = "w", pick = { queues = "a", request = "always the same" } },
      { id = job.id, token = job.token, type = "success" }, msgpack.NIL)
    assert.are.equal("done", reply[1])
    assert.are.equal("done", jq:status(job.id))
  end)

  describe("a failure", function()
    it("that says when leaves the next backoff as long as it was", function()
      local job = taken({ name = "a", retry_jitter = 0 })
      jq:fail(job, { retry_in = 0 })
      jq:fail(jq:take("a"))
      assert.are.equal(space.START_MS + 2000, jq:get(job.id).due_ms)
    end)
    it("of the last retry ends the job", function()
      jq:enqueue({ name = "a", max_retry = 2, retry_base = 0 })
      local states = {}
      for i = 1, 3 do
        states[i] = jq:fail(jq:take("a"))
      end
      assert.are.same({ "retrying", "retrying", "error" }, states)
    end)
  end)

  describe("the backoff", function()
    local function delays(spec, count)
      spec.name = "a"
      local id = jq:enqueue(spec)
      local seen = {}
      for i = 1, count do
        jq:fail(jq:take("a"))
        seen[i] = jq:get(id).due_ms - jq.now_ms
        jq:set_clock(jq:get(id).due_ms)
      end
      return seen
    end
    it("does not overflow after a thousand failures #once", function()
      local seen = delays({ retry_jitter = 0, retry_cap = 10, max_retry = 2000 }, 1100)
      assert.are.equal(10000, seen[1100])
    end)
    it("is shortened by the jitter and never lengthened", function()
      jq:enqueue_many({ name = "a", retry_base = 100, retry_jitter = 0.5 }, 100)
      local least, most = math.huge, 0
      for _, job in ipairs(jq:pick({ queues = "a", count = 100 })) do
        jq:fail(job)
        local delay = jq:get(job.id).due_ms - jq.now_ms
        least, most = math.min(least, delay), math.max(most, delay)
      end
      assert.is_true(least >= 50000 and least < 60000)
      assert.is_true(most <= 100000 and most > 90000)
    end)
  end)

  describe("repeated", function()
    it("by the attempt before the one that runs is known, by one before that it is lost", function()
      local id = jq:enqueue({ name = "a", retry_base = 0 })
      local first = jq:take("a")
      jq:fail(first)
      local second = jq:take("a")
      jq:fail(second)
      assert.are.equal(id, jq:take("a").id)
      assert.are.same({ "retrying", "LOST" }, { jq:fail(second), jq:fail(first) })
    end)
  end)
end)
