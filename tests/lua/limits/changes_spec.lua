-- Constraints that are added, changed and deleted while jobs wait and run.
local limits = require "support.limits"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("changed while jobs wait and run", function()
    local function jobs_run(count)
      local ids = jq:enqueue_many({ name = "a" }, 10)
      return jq:start({ queues = "a", count = count }), ids
    end

    it("holds at once those that wait when it is added", function()
      local jobs, ids = jobs_run(2)
      limit(1)
      assert.are.same({}, jq:start_ids("a"))
      jq:succeed(jobs[1])
      assert.are.same({}, jq:start_ids("a"))
      jq:succeed(jobs[2])
      assert.are.same({ ids[3] }, jq:start_ids("a"))
    end)
    it("starts no more than it allows when it is tightened", function()
      limit(5)
      local ids = jq:enqueue_many({ name = "a" }, 9)
      local jobs = jq:start("a")
      assert.are.equal(5, limit(2).running)
      for i = 1, 3 do
        jq:succeed(jobs[i])
        assert.are.same({}, jq:start_ids("a"))
      end
      jq:succeed(jobs[4])
      assert.are.same({ ids[6] }, jq:start_ids("a"))
    end)
    it("takes the jobs of its new match, and lets those of the old go", function()
      limit(1)
      local a = jq:enqueue_many({ name = "a" }, 3)
      local b = jq:enqueue_many({ name = "b" }, 3)
      local held = jq:start("a")
      jq:start({ queues = "b", count = 1 })
      limit(2, { name = "b" })
      assert.are.equal(1, jq:constraint("c").running)
      assert.are.same({ a[2], a[3] }, jq:start_ids("a"))
      assert.are.same({ b[2] }, jq:start_ids("b"))
      jq:succeed(held[1])
      assert.are.equal(2, jq:constraint("c").running)
    end)
    it("takes a running job out of its count however it leaves, if it was there before the constraint", function()
      local ids = jq:enqueue_many({ name = "a", retry_jitter = 0 }, 8)
      local jobs = jq:start({ queues = "a", count = 5 })
      limit(1)
      jq:fail(jobs[1])
      jq:release(jobs[2], 60)
      jq:cancel(ids[3])
      jq:succeed(jobs[4])
      assert.are.same({}, jq:start_ids("a"))
      assert.are.equal(1, jq:constraint("c").running)
      jq:release(jobs[5])
      assert.are.same({ ids[5] }, jq:start_ids("a"))
    end)
    it("wakes who sleeps for steps that are left, as jobs may be ready then", function()
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
      jq:enqueue_many({ name = "b", timeout = 1000 }, 250)
      jq:start({ queues = "b", count = 250 })
      jq:enqueue_each("a", { v = 1 }, { v = 1 })
      assert.are.equal(1, #jq:start("a"))
      jq:sleep("w", "channel", "a", 60000)
      jq:constrain({ id = "c", by = "argument.v", concurrency = 2 }, { name = { "a", "b" } })
      local started = 0
      for _ = 1, 10 do
        if jq:is_woken("channel") then
          local wait = { on = "channel", ms = 60000 }
          started = started + #jq:start({ worker = "w", queues = "a", count = 1, wait = wait })
        end
      end
      assert.are.equal(1, started)
      assert.are.same({}, jq:audit())
    end)
  end)
end)
