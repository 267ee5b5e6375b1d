-- Constraints that limit how many jobs run at once.
local limits = require "support.limits"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("lets", function()
    it("so many jobs run at once", function()
      limit(2)
      local ids = jq:enqueue_all("a", "a", "a", "a")
      assert.are.same({ ids[1], ids[2] }, jq:start_ids("a"))
      assert.are.same({}, jq:start_ids("a"))
      assert.are.same({ queued = 2, running = 2 }, jq:counts("a"))
    end)
    it("a job in with the pick of the finish that made its room", function()
      limit(1)
      local ids = jq:enqueue_all("a", "a")
      local job = jq:start_one("a")
      local reply = jq:call("finish", { worker = "worker", pick = { queues = "a" } },
        { id = job.id, token = job.token, type = "success" }, msgpack.NIL)
      assert.are.same({ ids[2] }, space.ids(space.picked(reply, 2)))
      assert.are.equal(1, jq:constraint("c").running)
    end)
  end)

  describe("holds a job that", function()
    it("waits for a retry leaves its room to others, and is held when it is due", function()
      limit(1)
      local ids = jq:enqueue_all({ name = "a", retry_base = 2, retry_jitter = 0 }, "a")
      jq:fail(jq:start_one("a"))
      local second = jq:start_one("a")
      assert.are.equal(ids[2], second.id)
      jq:pass(2)
      assert.are.same({}, jq:start_ids("a"))
      assert.are.equal("queued", jq:status(ids[1]))
      jq:succeed(second)
      assert.are.same({ ids[1] }, jq:start_ids("a"))
    end)
  end)
end)
