-- What a pick does about leases, its own and those that ran out, and about who picks.
local space = require "support.space"

describe("pick", function()
  local jq = space.each()

  describe("what is due", function()
    it("is moved a hundred steps at a time", function()
      local ids = jq:enqueue_many({ name = "a", delay = 1 }, 150)
      jq:pass(1)
      jq:pick("b")
      assert.are.same({ queued = 100, scheduled = 50 }, jq:counts("a"))
      jq:pick("b")
      assert.are.same({ queued = 150 }, jq:counts("a"))
      assert.are.equal(ids[1], jq:take("a").id)
    end)
    it("does not end more than some hundred expired jobs in one call", function()
      jq:enqueue_many({ name = "a", expires_in = 1 }, 1000)
      jq:pass(1)
      local jobs = jq:pick("a")
      assert.are.same({ 0, 0 }, { jobs.next_ms, #jobs })
      assert.is_true(jq:counts("a").error <= 300)
      local calls = 0
      repeat
        jobs = jq:pick("a")
        calls = calls + 1
      until jobs.next_ms ~= 0 or calls > 20
      assert.are.equal(1000, jq:counts("a").error)
    end)
  end)

  describe("a lease", function()
    it("of a job started after the clock was set back is its timeout long", function()
      jq:enqueue_all("a", "a")
      jq:take("a")
      jq:pass(-60)
      local job = jq:take("a")
      jq:pass(29.999)
      jq:tick()
      assert.are.equal("running", jq:status(job.id))
      jq:pass(0.001)
      jq:tick()
      assert.are.equal("retrying", jq:status(job.id))
    end)
  end)
end)
