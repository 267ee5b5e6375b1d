local counted_in = require "support.counted"
local msgpack = require "support.msgpack"
local space = require "support.space"

local HOUR_MS, DAY_MS = 3600000, 86400000
local START_MS = space.START_MS - space.START_MS % DAY_MS + DAY_MS

describe("stats", function()
  local jq = space.each()
  before_each(function()
    jq:set_clock(START_MS)
  end)

  local stats = counted_in(jq)
  local one, counted, fold = stats.one, stats.counted, stats.fold

  local PATHS = {
    { "jobs of their queue's name", "a", "a" },
    { "jobs of another name, under a limit", "a", "b", { id = "c", concurrency = 1000 } },
  }
  for _, path in ipairs(PATHS) do
    local queue, name, constraint = path[2], path[3], path[4]
    describe("of " .. path[1], function()
      before_each(function()
        jq:enqueue({ name = name, queue = queue })
        jq:succeed(jq:take(queue)) -- the first of a queue is never plain
        if constraint then
          jq:call("constrain", constraint, msgpack.pack({ name = name }))
        end
        jq:set_clock(START_MS + HOUR_MS)
      end)

      local function of_hour(more)
        return space.with({ queue = queue, name = name, from_ms = START_MS + HOUR_MS }, more)
      end
      local function spec(more)
        return space.with({ name = name, queue = queue }, more)
      end

      it("knows the shortest and the longest of all minutes", function()
        local fillers = 0
        for _, seconds in ipairs({ 5, 2, 9, 4 }) do
          jq:enqueue(spec())
          jq:pass(60)
          local job = jq:take(queue)
          jq:pass(seconds)
          jq:succeed(job)
          one(of_hour())
          fillers = fillers + fold()
        end
        assert.are.equal(fillers, one({ queue = "other filler", by = "day" }).enqueued)
        local run = one(of_hour()).run
        assert.are.same({ 4, 2000, 9000 }, { run.count, run.min, run.max })
      end)
      it("counts what was cancelled, waiting and running", function()
        local ids = jq:enqueue_many(spec(), 3)
        jq:take(queue)
        jq:call("cancel", { ids = ids })
        counted({ enqueued = 3, cancelled = 3 }, of_hour())
      end)
    end)
  end

  it("knows the mean exactly, percentiles to a fifth", function()
    math.randomseed(3)
    local sum, all = 0, {}
    for i = 1, 300 do
      local ms = math.floor(math.exp(math.random() * 9)) - 1
      all[i], sum = ms, sum + ms
      jq:enqueue({ name = "a", timeout = 1000 })
      local job = jq:take("a")
      jq:pass(ms / 1000)
      jq:succeed(job)
    end
    table.sort(all)
    local run = one({ by = "day", queue = "a" }).run
    assert.are.equal(300, run.count)
    assert.are.near(sum / 300, run.mean, 1e-9)
    assert.are.same({ all[1], all[300] }, { run.min, run.max })
    for field, rank in pairs({ p50 = 150, p90 = 270, p95 = 285, p99 = 297 }) do
      assert.is_true(run[field] >= all[rank] and run[field] <= all[rank] * 1.2, field)
    end
    local total, last = 0, -1
    for _, step in ipairs(run.histogram) do
      local below = 0
      for _, ms in ipairs(all) do
        below = below + (ms > last and ms <= step[1] and 1 or 0)
      end
      assert.are.equal(below, step[2])
      total, last = total + step[2], step[1]
    end
    assert.are.equal(300, total)
  end)
end)
