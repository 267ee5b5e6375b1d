-- Constraints that limit starts in time: exact windows, evenly spaced starts, and costs.
local space = require "support.space"

describe("a constraint with rate", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  ---@param rate table {limit, period, smooth?} as fields
  local function limit(rate, more, match)
    local spec = { id = "c", rate = rate }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    return jq:constrain(spec, match or { name = "a" })
  end

  --- Jobs whose leases outlast every window here.
  local function enqueue(count)
    return jq:enqueue_many({ name = "a", timeout = 100000 }, count)
  end

  --- How many start at each of these moments, in seconds since the beginning.
  local function starts_at(...)
    local counts = {}
    for i, second in ipairs({ ... }) do
      jq:set_clock(space.START_MS + second * 1000)
      counts[i] = #jq:start("a")
    end
    return counts
  end

  describe("lets", function()
    it("so many start in a period", function()
      limit({ limit = 3, period = 10 })
      local ids = enqueue(7)
      assert.are.same({ ids[1], ids[2], ids[3] }, jq:start_ids("a"))
      assert.are.same({ 0, 3, 0, 1 }, starts_at(9.999, 10, 19.999, 20))
    end)
    it("each start count for its own period", function()
      limit({ limit = 3, period = 10 })
      enqueue(20)
      for _, second in ipairs({ 0, 4, 8 }) do
        jq:set_clock(space.START_MS + second * 1000)
        assert.are.equal(1, #jq:start({ queues = "a", count = 1 }))
      end
      assert.are.same({ 0, 1, 0, 1, 0, 1, 0, 1 }, starts_at(9.999, 10, 13.999, 14, 17.999, 18, 19.999, 20))
    end)
    it("one start in a millisecond", function()
      limit({ limit = 1, period = 0.001 })
      enqueue(4)
      assert.are.same({ 1, 0, 1, 1 }, starts_at(0, 0, 0.001, 0.002))
    end)
    it("starts go on for years without a mistake", function()
      limit({ limit = 2, period = 31536000 })
      enqueue(6)
      local year = 31536000
      assert.are.same({ 2, 0, 0, 2, 0, 2 }, starts_at(0, 1, year - 0.001, year, 2 * year - 0.001, 2 * year))
    end)
    it("so many start over all queues and picks", function()
      limit({ limit = 3, period = 10 })
      jq:enqueue_all({ name = "a", queue = "q1" }, { name = "a", queue = "q2" }, { name = "a", queue = "q3" },
        { name = "a", queue = "q1", priority = -1 }, { name = "b", queue = "q1" })
      assert.are.equal(2, #jq:start("q1") - 1)
      assert.are.equal(1, #jq:start({ "q2", "q3" }))
      assert.are.equal(0, #jq:start("*"))
      jq:pass(10)
      assert.are.equal(1, #jq:start("*"))
    end)
    it("so many start at workers that are pushed to", function()
      limit({ limit = 2, period = 10 })
      jq:register({ url = "http://w/", max_jobs = 9 })
      local ids = enqueue(5)
      local jobs = jq:push()
      assert.are.same({ ids[1], ids[2] }, space.ids(jobs))
      assert.are.equal(10000, jobs.next_ms)
      jq:pass(10)
      assert.are.same({ ids[3], ids[4] }, space.ids(jq:push()))
    end)
    it("jobs of each value start by themselves", function()
      limit({ limit = 1, period = 10 }, { by = "argument.v" })
      local ids = jq:enqueue_each({ name = "a", timeout = 1000 }, { v = 1 }, { v = 1 }, { v = 2 })
      assert.are.same({ ids[1], ids[3] }, jq:start_ids("a"))
      jq:pass(4)
      local more = jq:enqueue_each({ name = "a", timeout = 1000 }, { v = 3 }, { v = 2 }, { v = 3 })
      assert.are.same({ more[1] }, jq:start_ids("a"))
      jq:pass(6)
      assert.are.same({ ids[2], more[2] }, jq:start_ids("a"))
      jq:pass(4)
      assert.are.same({ more[3] }, jq:start_ids("a"))
    end)
    it("a job start that is free while others are held", function()
      limit({ limit = 1, period = 10 })
      jq:enqueue_all({ name = "a", queue = "q" }, { name = "a", queue = "q" })
      local free = jq:enqueue({ name = "b", queue = "q", priority = 5 })
      assert.are.equal(2, #jq:start("q"))
      assert.are.equal("running", jq:status(free))
    end)
    it("the best of those that are held start first", function()
      limit({ limit = 1, period = 10 })
      enqueue(1)
      jq:start("a")
      local ids = jq:enqueue_all({ name = "a", priority = 3 }, { name = "a", priority = 2 },
        { name = "a", priority = 2 })
      assert.are.equal(0, #jq:start("a"))
      local better = jq:enqueue({ name = "a", priority = 1 })
      local started = {}
      for i = 1, 4 do
        jq:pass(10)
        started[i] = jq:start_ids("a")[1]
      end
      assert.are.same({ better, ids[2], ids[3], ids[1] }, started)
    end)
  end)

  describe("counts a start", function()
    for way, go in pairs({
      ["that succeeded"] = function(job)
        jq:succeed(job)
      end,
      ["that failed"] = function(job)
        jq:fail(job, { should_retry = false })
      end,
      ["that was given back"] = function(job)
        jq:release(job)
      end,
      ["that was cancelled"] = function(job)
        jq:cancel(job.id)
      end,
    }) do
      it(way, function()
        limit({ limit = 1, period = 10 })
        enqueue(2)
        go(jq:start_one("a"))
        assert.are.same({ 0, 1 }, starts_at(9.999, 10))
      end)
    end
    it("of a retry", function()
      limit({ limit = 2, period = 10 })
      jq:enqueue({ name = "a", retry_base = 1, retry_jitter = 0 })
      jq:fail(jq:start_one("a"))
      jq:pass(1)
      assert.are.equal(1, #jq:start("a"))
      enqueue(2)
      assert.are.same({ 0, 1, 0, 1 }, starts_at(9.999, 10, 10.999, 11))
    end)
    it("of a retry that waits for the window as others do", function()
      limit({ limit = 1, period = 10 })
      local id = jq:enqueue({ name = "a", retry_base = 1, retry_jitter = 0 })
      jq:fail(jq:start_one("a"))
      assert.are.same({ 0, 0, 1 }, starts_at(1, 9.999, 10))
      assert.are.same({ "running", 2 }, { jq:status(id), jq:get(id).attempt })
    end)
    it("not of a pick that is repeated", function()
      limit({ limit = 2, period = 10 })
      enqueue(3)
      local spec = { queues = "a", request = "r" }
      assert.are.same(jq:pick_ids(spec), jq:pick_ids(spec))
      assert.are.equal(1, #jq:start("a"))
    end)
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
    it("by next_ms when the first of many windows opens", function()
      limit({ limit = 1, period = 10 }, { by = "argument.v" })
      for i = 1, 3 do
        jq:enqueue_each({ name = "a", timeout = 1000 }, { v = i }, { v = i })
        jq:start("a")
        jq:pass(2)
      end
      assert.are.equal(4000, jq:start("a").next_ms)
      jq:pass(4)
      local jobs = jq:start("a")
      assert.are.equal(1, #jobs)
      assert.are.equal(2000, jobs.next_ms)
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
    it("by usage how many starts count and when it opens", function()
      limit({ limit = 2, period = 10 })
      enqueue(5)
      jq:start({ queues = "a", count = 1 })
      jq:pass(4)
      jq:start("a")
      local key = jq:usage("c")[1]
      assert.are.same({ 2, 2, space.START_MS + 10000 }, { key.running, key.starts, key.opens_ms })
      jq:pass(6)
      assert.are.equal(1, jq:usage("c")[1].starts)
    end)
    it("a sleeper by its timer when to come", function()
      limit({ limit = 1, period = 7 })
      local ids = enqueue(2)
      jq:start("a")
      local next_ms = 0
      for _ = 1, 5 do
        next_ms = jq:sleep("w1", "ch", "a", 60000)
        if next_ms ~= 0 and not jq:is_woken("ch") then
          break
        end
      end
      assert.are.equal(7000, next_ms)
      jq:pass(7)
      assert.are.same({ ids[2] }, jq:start_ids({ worker = "w1", queues = "a", wait = { on = "ch", ms = 60000 } }))
    end)
    it("a sleeper when the window opens, whoever moved it", function()
      limit({ limit = 1, period = 7 })
      enqueue(2)
      jq:start("a")
      for _ = 1, 3 do
        jq:sleep("w1", "ch", "a", 60000)
        jq:is_woken("ch")
      end
      jq:sleep("w1", "ch", "a", 60000)
      jq:pass(7)
      jq:tick()
      jq:pick("b")
      assert.is_true(jq:is_woken("ch"))
      assert.are.equal(1, #jq:start("a"))
    end)
    it("a sleeper of the nearer moment when a job comes that is held", function()
      limit({ limit = 1, period = 7 })
      enqueue(1)
      jq:start("a")
      local before_ms = jq:sleep("w1", "ch", "a", 60000)
      local id = enqueue(1)[1]
      assert.is_true(jq:is_woken("ch") or before_ms == 7000)
      assert.are.equal(7000, jq:start({ worker = "w1", queues = "a", wait = { on = "ch", ms = 60000 } }).next_ms)
      jq:pass(7)
      assert.are.same({ id }, jq:start_ids("a"))
    end)
  end)

  describe("with concurrency too", function()
    it("needs room in both", function()
      limit({ limit = 3, period = 10 }, { concurrency = 2 })
      local ids = enqueue(6)
      local jobs = jq:start("a")
      assert.are.same({ ids[1], ids[2] }, space.ids(jobs))
      jq:succeed(jobs[1])
      jobs[1] = jq:start("a")[1]
      assert.are.equal(ids[3], jobs[1].id)
      jq:succeed(jobs[1])
      jq:succeed(jobs[2])
      assert.are.same({ 0, 2 }, starts_at(9.999, 10))
      assert.are.same({ 0 }, starts_at(30))
    end)
    it("of another constraint takes neither when one is closed", function()
      limit({ limit = 2, period = 10 })
      jq:constrain({ id = "d", concurrency = 1 }, { tags = "d" })
      local ids = jq:enqueue_all({ name = "a", tags = { "d" } }, { name = "a", tags = { "d" } }, "a", "a")
      local jobs = jq:start("a")
      assert.are.same({ ids[1], ids[3] }, space.ids(jobs))
      jq:succeed(jobs[1])
      assert.are.equal(0, #jq:start("a"))
      assert.are.equal(0, jq:constraint("d").running)
      jq:pass(10)
      assert.are.same({ ids[2], ids[4] }, jq:start_ids("a"))
    end)
  end)

  describe("smooth", function()
    it("spaces starts evenly", function()
      limit({ limit = 5, period = 10, smooth = true })
      enqueue(9)
      assert.are.same({ 1, 0, 1, 0, 1, 1 }, starts_at(0, 1.999, 2, 3.999, 4, 6))
    end)
    it("saves nothing up", function()
      limit({ limit = 5, period = 10, smooth = true })
      enqueue(9)
      assert.are.same({ 1, 1, 0, 1 }, starts_at(0, 100, 101.999, 102))
    end)
    it("counts from the start itself, though it came late", function()
      limit({ limit = 5, period = 10, smooth = true })
      enqueue(9)
      assert.are.same({ 1, 1, 0, 1 }, starts_at(0, 3, 4.999, 5))
    end)
    it("is never early with a spacing that is no whole millisecond", function()
      limit({ limit = 3, period = 1, smooth = true })
      enqueue(9)
      assert.are.same({ 1, 0, 1, 0, 1 }, starts_at(0, 0.333, 0.334, 0.667, 0.668))
    end)
    it("tells by next_ms when the next may start", function()
      limit({ limit = 4, period = 10, smooth = true })
      enqueue(3)
      assert.are.equal(2500, jq:start("a").next_ms)
      jq:pass(1)
      assert.are.equal(1500, jq:start("a").next_ms)
    end)
    it("spaces the starts of each value by themselves", function()
      limit({ limit = 1, period = 3, smooth = true }, { by = "argument.v" })
      local ids = jq:enqueue_each("a", { v = 1 }, { v = 1 }, { v = 2 }, { v = 2 })
      assert.are.same({ ids[1], ids[3] }, jq:start_ids("a"))
      jq:pass(3)
      assert.are.same({ ids[2], ids[4] }, jq:start_ids("a"))
    end)
    it("spaces by cost", function()
      limit({ limit = 10, period = 10, smooth = true }, { cost = "argument.n" })
      local ids = jq:enqueue_each("a", { n = 3 }, { n = 1 }, { n = 0.5 }, { n = 100 }, { n = 1 })
      local started = {}
      for _, second in ipairs({ 0, 2.999, 3, 3.999, 4, 4.499, 4.5, 14.499, 14.5 }) do
        jq:set_clock(space.START_MS + second * 1000)
        local id = jq:start_ids("a")[1]
        if id then
          started[#started + 1] = { second, id }
        end
      end
      assert.are.same({ { 0, ids[1] }, { 3, ids[2] }, { 4, ids[3] }, { 4.5, ids[4] }, { 14.5, ids[5] } }, started)
    end)
  end)
end)
