-- What a pick does about leases, its own and those that ran out, and about who picks.
local space = require "support.space"

describe("pick", function()
  local jq = space.each()

  describe("what is due", function()
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
end)
