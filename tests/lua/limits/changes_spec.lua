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

    it("holds at once those that wait when it is added, and counts none that run already", function()
      local jobs, ids = jobs_run(2)
      limit(1)
      assert.are.same({ ids[3] }, jq:start_ids("a"))
      jq:succeed(jobs[1])
      assert.are.same({}, jq:start_ids("a"))
      assert.are.equal(1, jq:constraint("c").running)
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
    it("lets the jobs of its old match go", function()
      limit(1)
      local a = jq:enqueue_many({ name = "a" }, 3)
      local held = jq:start("a")
      limit(1, { name = "b" })
      assert.are.same({ a[2], a[3] }, jq:start_ids("a"))
      jq:succeed(held[1])
      assert.are.equal(0, jq:constraint("c").running)
    end)
    it("wakes who sleeps for keys that are still to be looked at", function()
      limit(1, nil, { by = "argument.v" })
      for v = 1, 250 do
        jq:enqueue_each({ name = "a", timeout = 1000 }, { v = v }, { v = v })
      end
      assert.are.equal(250, #jq:start({ queues = "a", count = 300 }))
      jq:sleep("w", "channel", "a", 60000)
      limit(2, nil, { by = "argument.v" })
      local started, jobs = 0, {}
      while jobs[1] or jobs.next_ms == 0 or jq:is_woken("channel") do
        jobs = jq:start({ worker = "w", queues = "a", count = 300, wait = { on = "channel", ms = 60000 } })
        started = started + #jobs
      end
      assert.are.equal(250, started)
      assert.are.same({}, jq:audit())
    end)
  end)
end)
