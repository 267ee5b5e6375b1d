-- Constraints that limit starts in time: exact windows.
local limits = require "support.limits"
local space = require "support.space"

describe("a constraint with rate", function()
  local jq = space.each()

  local limit, enqueue, starts_at = limits.in_time(jq)

  it("counts a start until its period is over, also of a job that ended", function()
    limit({ limit = 1, period = 10 })
    enqueue(2)
    jq:succeed(jq:start_one("a"))
    assert.are.same({ 0, 1 }, starts_at(9.999, 10))
  end)

  describe("tells", function()
    it("by next_ms when the window opens", function()
      limit({ limit = 2, period = 10 })
      enqueue(5)
      assert.are.equal(10000, jq:start("a").next_ms)
      jq:pass(3)
      assert.are.equal(7000, jq:start("a").next_ms)
      jq:pass(6.999)
      assert.are.equal(1, jq:start("a").next_ms)
      jq:pass(0.001)
      assert.are.equal(2, #jq:start("a"))
    end)
    it("by next_ms nothing once the window is past and nothing waits for it", function()
      limit({ limit = 2, period = 10 })
      jq:enqueue_all("a", "a")
      for _, job in ipairs(jq:start("a")) do
        jq:succeed(job)
      end
      jq:pass(40) -- the leases are past as well
      jq:settle()
      assert.is_true(jq:start("a").next_ms > 3600000) -- when the records of done jobs go
    end)
  end)
end)
