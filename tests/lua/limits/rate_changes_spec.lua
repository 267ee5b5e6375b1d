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
    it("to a rate beside concurrency counts no start from before", function()
      jq:constrain({ id = "c", concurrency = 9 }, { name = "a" })
      enqueue(8)
      jq:start({ queues = "a", count = 3 })
      limit({ limit = 2, period = 10 }, { concurrency = 9 })
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
    it("to a larger limit opens at once, and counts all starts", function()
      limit({ limit = 2, period = 10 })
      enqueue(20)
      assert.are.equal(2, #jq:start("a"))
      jq:pass(3)
      limit({ limit = 5, period = 10 })
      assert.are.same({ 3, 0, 2, 0, 3 }, starts_at(3, 9.999, 10, 12.999, 13))
    end)
    it("to a larger limit opens every key", function()
      limit({ limit = 1, period = 10 }, { by = "argument.v" })
      local ids = jq:enqueue_each("a", { v = 1 }, { v = 1 }, { v = 2 }, { v = 2 }, { v = 1 })
      assert.are.equal(2, #jq:start("a"))
      limit({ limit = 2, period = 10 }, { by = "argument.v" })
      assert.are.same({ ids[2], ids[4] }, jq:start_ids("a"))
    end)
    for what, change in pairs({
      period = function()
        limit({ limit = 2, period = 20 })
      end,
      smooth = function()
        limit({ limit = 2, period = 10, smooth = true })
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
    it("in nothing counts all starts", function()
      limit({ limit = 2, period = 10 })
      enqueue(9)
      jq:start("a")
      limit({ limit = 2, period = 10 })
      assert.are.same({ 0, 2 }, starts_at(9.999, 10))
    end)
    it("in concurrency alone counts all starts", function()
      limit({ limit = 2, period = 10 }, { concurrency = 5 })
      enqueue(9)
      jq:start("a")
      limit({ limit = 2, period = 10 }, { concurrency = 6 })
      assert.are.same({ 0, 2 }, starts_at(9.999, 10))
    end)
    it("to no rate frees what it held", function()
      limit({ limit = 1, period = 10000 }, { concurrency = 3 })
      enqueue(9)
      assert.are.equal(1, #jq:start("a"))
      jq:constrain({ id = "c", concurrency = 3 }, { name = "a" })
      assert.are.equal(2, #jq:start("a"))
      assert.is_nil(jq:constraint("c").rate)
      assert.is_nil(jq:constraint("c").starts)
    end)
    it("by being deleted frees what it held", function()
      limit({ limit = 1, period = 10000 })
      enqueue(3)
      jq:start("a")
      jq:unconstrain("c")
      assert.are.equal(2, #jq:start("a"))
    end)
    it("by being deleted and made again counts no start from before", function()
      limit({ limit = 1, period = 10000 })
      enqueue(3)
      jq:start("a")
      jq:unconstrain("c")
      limit({ limit = 1, period = 10000 })
      assert.are.equal(1, #jq:start("a"))
    end)
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
    it("keeps smooth starts apart", function()
      limit({ limit = 1, period = 10, smooth = true })
      enqueue(3)
      assert.are.same({ 1, 0, 0, 1 }, starts_at(0, -5, 9.999, 10))
    end)
    it("keeps other keys free", function()
      limit({ limit = 1, period = 10 }, { by = "argument.v" })
      jq:enqueue_each({ name = "a", timeout = 1000 }, { v = 1 }, { v = 2 }, { v = 2 })
      jq:start({ queues = "a", count = 1 })
      assert.are.same({ 1, 0, 1 }, starts_at(-100, -90.001, -90))
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

  describe("over a long random run #once", function()
    --- The most that any window holds, looked at from each start back.
    local function fullest_window(starts, period_ms)
      local most, from, sum = 0, 1, 0
      for i, start in ipairs(starts) do
        sum = sum + start.cost
        while starts[from].at_ms <= start.at_ms - period_ms do
          sum = sum - starts[from].cost
          from = from + 1
        end
        most = math.max(most, sum)
        assert.is_true(i == 1 or starts[i - 1].at_ms <= start.at_ms)
      end
      return most
    end

    local function window(starts, now_ms, period_ms)
      local sum = 0
      for i = #starts, 1, -1 do
        if starts[i].at_ms <= now_ms - period_ms then
          break
        end
        sum = sum + starts[i].cost
      end
      return sum
    end

    for seed = 1, 4 do
      it("holds no window with more than limit, and leaves no room unused (" .. seed .. ")", function()
        math.randomseed(seed)
        local most, period_ms = math.random(2, 12), math.random(20, 5000)
        limit({ limit = most, period = period_ms / 1000 })
        local starts, waiting, is_full = {}, 0, false
        for _ = 1, 400 do
          if waiting < 30 then
            enqueue(40)
            waiting = waiting + 40
          end
          local jobs = jq:start({ queues = "a", count = math.random(1, 2 * most) })
          for _, job in ipairs(jobs) do
            starts[#starts + 1] = { at_ms = jq.now_ms, cost = 1 }
            if math.random(8) == 1 then
              jq:release(job)
            else
              jq:succeed(job)
              waiting = waiting - 1
            end
          end
          if #jq:start({ queues = "a", count = 1 }) == 0 then
            assert.are.equal(most, window(starts, jq.now_ms, period_ms))
            is_full = true
          else
            starts[#starts + 1] = { at_ms = jq.now_ms, cost = 1 }
            waiting = waiting - 1
          end
          jq:pass(math.random(0, math.ceil(period_ms / 4)) / 1000)
        end
        assert.is_true(is_full)
        assert.are.equal(most, fullest_window(starts, period_ms))
      end)
    end
  end)
end)
