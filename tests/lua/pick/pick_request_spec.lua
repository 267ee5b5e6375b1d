-- Request tokens of pick: a call that is sent twice gives the same jobs.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("pick", function()
  local jq = space.each()

  describe("request", function()
    local function pick(more)
      local spec = space.with({ queues = "a", count = 2, request = "r" }, more)
      return jq:pick(spec)
    end

    it("repeated gives no job that has no time left to run: it goes back, and spent nothing", function()
      local id = jq:enqueue({ name = "a", timeout = 10, max_runtime = 12, max_retry = 0 })
      pick()
      jq:pass(12)
      local jobs = pick()
      assert.are.same({}, space.ids(jobs))
      assert.are.equal(0, jobs.next_ms)
      assert.are.same({ "queued", 0 }, { jq:status(id), jq:get(id).retry_count })
      local job = jq:take("a")
      assert.are.same({ id, 2 }, { job.id, job.attempt })
      assert.are.equal("done", jq:succeed(job))
    end)
    it("repeated when nothing of it runs any more is told to go on, not to sleep", function()
      jq:enqueue_all("a", { name = "a", delay = 100 })
      local job = pick({ count = 1 })[1]
      jq:succeed(job)
      local jobs = jq:unchanged(function()
        return pick({ wait = { on = "all", ms = 1000 } })
      end)
      assert.are.same({}, space.ids(jobs))
      assert.are.equal(1, jobs.next_ms)
    end)
    it("of another length, or not at the end, is the same", function()
      jq:enqueue_all("a", "a", "a")
      for _, token in ipairs({ "0123456789abcdef", "0123456789abcdeg", ("r"):rep(17) }) do
        local blob = "\131\166worker\161w\166queues\161a\167request" .. msgpack.pack(token)
        local first = jq:call("pick", blob)
        assert.are.equal(first[2], jq:call("pick", blob)[2])
      end
      assert.are.same({ running = 3 }, jq:counts("a"))
      jq:refuses("INVALID", "pick", "\131\166worker\161w\166queues\161a")
    end)
  end)
end)
