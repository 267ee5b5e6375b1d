-- Constraints over several queues, under every order of them, and for workers that are pushed to.
local limits = require "support.limits"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("over queues", function()
    local function held_in(queue, count)
      return jq:enqueue_many({ name = "a", queue = queue }, count)
    end

    it("gives room to whoever asks, though better jobs are held in other queues", function()
      limit(1)
      local first = held_in("q1", 1)[1]
      local job = jq:start_one("q1")
      assert.are.equal(first, job.id)
      jq:enqueue({ name = "a", queue = "q1", priority = -5 })
      local here = held_in("q2", 1)[1]
      assert.are.same({}, jq:start_ids({ "q1", "q2" }))
      jq:succeed(job)
      assert.are.same({ here }, jq:start_ids("q2"))
      assert.are.same({}, jq:start_ids("q1"))
    end)
    it("gives room past a queue that is paused", function()
      limit(1)
      held_in("q1", 1)
      local job = jq:start_one("q1")
      local better = jq:enqueue({ name = "a", queue = "q1", priority = -5 })
      local here = held_in("q2", 1)[1]
      jq:start("*")
      jq:queue({ name = "q1", paused = true })
      jq:succeed(job)
      local jobs = jq:start("*")
      assert.are.same({ here }, space.ids(jobs))
      jq:queue({ name = "q1", paused = false })
      assert.are.same({}, jq:start_ids("*"))
      jq:succeed(jobs[1])
      assert.are.same({ better }, jq:start_ids("*"))
    end)
    for what, queues in pairs({ ["*"] = "*", ["a pattern"] = "q*", ["a list"] = { "q1", "q2", "q3" },
      ["a list with a pattern"] = { "q1", "q*" } }) do
      it("holds and frees for a pick of " .. what, function()
        limit(1)
        local ids = jq:enqueue_all({ name = "a", queue = "q2" }, { name = "a", queue = "q1" },
          { name = "b", queue = "q2" }, { name = "a", queue = "q3", priority = -1 }, { name = "b", queue = "q3" })
        local jobs = jq:start(queues)
        assert.are.same({ ids[4], ids[3], ids[5] }, space.ids(jobs))
        assert.are.same({}, jq:start_ids(queues))
        jq:succeed(jobs[1])
        jobs = jq:start(queues)
        assert.are.same({ ids[1] }, space.ids(jobs))
        local late = jq:enqueue({ name = "b", queue = "q1" })
        assert.are.same({ late }, jq:start_ids(queues))
        jq:succeed(jobs[1])
        assert.are.same({ ids[2] }, jq:start_ids(queues))
      end)
      it("is freed for a pick of " .. what .. " by a job that another took", function()
        limit(1)
        local ids = jq:enqueue_all({ name = "a", queue = "q1" }, { name = "a", queue = "q2" })
        local job = jq:start_one("q1")
        assert.are.same({}, jq:start_ids(queues))
        jq:succeed(job)
        assert.are.same({ ids[2] }, jq:start_ids(queues))
      end)
    end
  end)

  describe("for workers that are pushed to", function()
    local function worker(spec)
      spec.url = spec.url or "http://w/"
      spec.max_jobs = spec.max_jobs or 10
      return jq:register(spec)
    end

    it("lets so many jobs run at once", function()
      limit(2)
      worker({})
      local ids = jq:enqueue_all("a", "a", "a", "b")
      local jobs = jq:push()
      assert.are.same({ ids[1], ids[2], ids[4] }, space.ids(jobs))
      jq:succeed(jobs[1])
      assert.are.same({ ids[3] }, space.ids(jq:push()))
    end)
  end)
end)
