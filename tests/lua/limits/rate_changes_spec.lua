-- Rates that change, clocks that go back, and long random runs.
local limits = require "support.limits"
local space = require "support.space"

describe("a constraint with rate", function()
  local jq = space.each()

  local limit, enqueue, starts_at = limits.in_time(jq)

  describe("changed", function()
    it("counts no start from before it was set", function()
      enqueue(9)
      jq:start({ queues = "a", count = 3 })
      limit({ limit = 2, period = 10 })
      assert.are.same({ 2, 0, 2 }, starts_at(0, 9.999, 10))
    end)
    it("to a smaller limit counts all starts", function()
      limit({ limit = 5, period = 10 })
      enqueue(20)
      for _ = 1, 5 do
        jq:start({ queues = "a", count = 1 })
        jq:pass(1)
      end
      limit({ limit = 2, period = 10 }) -- started at 0, 1, 2, 3, 4: the last one alone counts from 13 on
      assert.are.same({ 0, 0, 1, 1 }, starts_at(10, 12.999, 13, 14))
    end)
    for what, change in pairs({
      period = function()
        limit({ limit = 2, period = 20 })
      end,
      cost = function()
        limit({ limit = 2, period = 10 }, { cost = 2 })
      end,
    }) do
      it("in " .. what .. " counts no start from before", function()
        limit({ limit = 2, period = 10 })
        enqueue(9)
        assert.are.equal(2, #jq:start("a"))
        change()
        assert.is_true(#jq:start({ queues = "a", count = 1 }) == 1)
      end)
    end
  end)

  describe("when the clock goes back", function()
    it("dates a start to the latest start of its key", function()
      limit({ limit = 2, period = 10 })
      enqueue(9)
      jq:start({ queues = "a", count = 1 })
      assert.are.same({ 1, 0, 2 }, starts_at(-5, 9.999, 10))
    end)
    it("does not open a closed window before its time", function()
      limit({ limit = 1, period = 10 })
      enqueue(3)
      assert.are.same({ 1, 0, 0, 1 }, starts_at(0, -3600, 9.999, 10))
    end)
    it("tells by next_ms how long that is", function()
      limit({ limit = 1, period = 10 })
      enqueue(3)
      jq:start("a")
      jq:pass(-60)
      assert.are.equal(70000, jq:start("a").next_ms)
    end)
    it("closes nothing because of a start that has left the window", function()
      limit({ limit = 1, period = 10 }, { by = "argument.v" })
      jq:enqueue_each({ name = "a", queue = "b", timeout = 1000 }, { v = 1 })
      jq:start({ queues = "b", count = 2 })
      jq:enqueue_each({ name = "a", queue = "a", timeout = 1000 }, { v = 2 })
      jq:enqueue_each({ name = "a", queue = "b", timeout = 1000 }, { v = 1 })
      assert.are.equal(0, #jq:start("b"))
      jq:pass(10)
      assert.are.equal("a", jq:start({ queues = { "b", "a" }, count = 1 })[1].queue)
      jq:pass(-5)
      for _, use in ipairs(jq:usage("c")) do
        assert.are.equal(use.by == 1 and 0 or 1, use.starts)
        assert.are.equal(use.by == 2, use.opens_ms ~= nil)
      end
    end)
  end)
end)
