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
