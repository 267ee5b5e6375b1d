-- No call does unbounded work, however many jobs are held, however many constraints there are.
local limits = require "support.limits"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("held jobs", function()
  local jq = space.each()

  local LONG_S = limits.LONG_S

  local limit, tagged, tagged_each = limits.by_tags(jq)

  describe("cost no call unbounded work: #once", function()
    local MANY = 2000
    -- Far above what a bounded step does, far below what touching each job would.
    local MOST = 4000

    local function bounded(what, most)
      local commands = jq:commands(what)
      assert.is_true(commands <= (most or MOST), commands .. " commands")
    end

    --- Picks to the end, each pick bounded.
    local function start_bounded(count, most)
      local jobs = {}
      for _ = 1, 2000 do
        local picked
        bounded(function()
          picked = jq:pick({ queues = "q", count = count })
        end, most)
        for _, job in ipairs(picked) do
          jobs[#jobs + 1] = job
        end
        if picked.next_ms ~= 0 or #jobs >= count then
          return jobs
        end
      end
      error("a pick answers 0 for ever")
    end

    it("adding, changing and deleting over many jobs of one lane", function()
      jq:enqueue_many({ name = "job", queue = "q", tags = { "c" }, timeout = LONG_S }, MANY)
      for _, concurrency in ipairs({ 1, 3, 2 }) do
        bounded(function()
          limit("c", concurrency)
        end)
        start_bounded(5)
      end
      bounded(function()
        jq:unconstrain("c")
      end)
      assert.are.equal(5, #start_bounded(5))
    end)
    it("adding, changing and deleting over many lanes", function()
      tagged_each({ "c", "d" }, MANY)
      bounded(function()
        limit("d", 1, { by = "argument.v" })
      end)
      assert.are.equal(5, #start_bounded(5))
      bounded(function()
        limit("c", 7)
      end)
      assert.are.equal(5, #start_bounded(5))
      assert.are.equal(2, #start_bounded(5))
      assert.are.equal(0, #start_bounded(5))
      bounded(function()
        limit("c", 9)
      end)
      assert.are.equal(2, #start_bounded(5))
      bounded(function()
        limit("d", 2, { by = "argument.v" })
      end)
      assert.are.equal(0, #start_bounded(5))
      bounded(function()
        jq:unconstrain("c")
      end)
      assert.are.equal(5, #start_bounded(5))
    end)
    it("opening a key on which many lanes wait", function()
      limit("c", 1)
      limit("d", 1, { by = "argument.v" })
      tagged({ "c" })
      local job = jq:start_one("q")
      tagged_each({ "c", "d" }, MANY)
      start_bounded(5)
      bounded(function()
        jq:succeed(job)
      end)
      assert.are.equal(1, #start_bounded(5))
      jq:hold("c", 10)
      bounded(function()
        jq:hold("c", 0)
      end)
      bounded(function()
        jq:usage("c")
        jq:explain(job.id)
      end)
    end)
    it("opening a key under which jobs of many queues wait: they start in order", function()
      limit("c", 1)
      local ids = {}
      for i = 1, MANY do
        ids[i] = tagged({ "c" }, nil, { queue = "q" .. i })
      end
      --- The one job that may start, and who holds all others then.
      local function start_next(queues)
        local started
        repeat
          local picked
          bounded(function()
            picked = jq:pick(queues)
          end)
          started = started or picked[1]
        until picked.next_ms ~= 0
        return started
      end
      local order = { 1, 2, 1000, 3, 4, 5 }
      for i, queue in ipairs({ "*", "*", "q1000", "*", "q4", "*" }) do
        local job = start_next(queue)
        assert.are.equal(ids[order[i]], job.id)
        assert.is_nil(start_next("*"))
        bounded(function()
          jq:succeed(job)
        end)
      end
      assert.are.same({}, jq:audit())
    end)
    it("opening a key that holds lanes of which most are empty by now: it sends those behind them", function()
      limit("c", 1)
      limit("d", 100, { by = "argument.v" })
      tagged({ "c" })
      jq:start_one("q")
      local ids, queues, unwanted = {}, {}, {}
      for i = 1, 8 do
        queues[i] = "q" .. i
        unwanted[i] = tagged_each({ "c", "d" }, 300, { queue = queues[i] })
        ids[i] = tagged({ "c" }, nil, { queue = queues[i] })
      end
      assert.are.equal(0, #jq:start(queues))
      for i = 1, 8 do
        jq:call("cancel", { ids = unwanted[i] })
      end
      jq:unconstrain("c")
      assert.are.same(ids, space.ids(jq:start({ queues = queues, count = 9 })))
    end)
    it("making a queue fair and unfair over many jobs", function()
      local most = 10000 -- a step of these does more
      tagged_each({}, 5000)
      bounded(function()
        jq:queue({ name = "q", fair = { by = "argument.v" } })
      end, most)
      assert.are.equal(5, #start_bounded(5, most))
      bounded(function()
        jq:queue({ name = "q", fair = msgpack.raw("\144") })
      end, most)
      assert.are.equal(5, #start_bounded(5, most))
    end)
    it("a pick past held jobs, however many they are", function()
      local costs = {}
      for i, count in ipairs({ 50, 3000 }) do
        local queue = "q" .. i
        jq:constrain({ id = queue, concurrency = 1 }, { queue = queue, name = "held" })
        jq:constrain({ id = queue .. "by", concurrency = 1, by = "argument.v" }, { queue = queue, name = "held" })
        tagged_each({}, count, { name = "held", queue = queue, priority = -1 })
        tagged_each({}, 20, { queue = queue })
        jq:start({ queues = queue, count = 3 })
        costs[i] = jq:commands(function()
          assert.are.equal(1, #jq:pick(queue))
        end)
      end
      assert.is_true(costs[2] <= costs[1] + 20, costs[1] .. " and " .. costs[2] .. " commands")
    end)
    it("enqueueing, though a thousand constraints are about other names", function()
      jq:enqueue("job")
      local before = jq:commands(function()
        jq:enqueue("job")
      end)
      for i = 1, 999 do
        jq:constrain({ id = "c" .. i, concurrency = 1 }, { name = "other" .. i })
      end
      jq:start("job")
      jq:enqueue("job")
      local after = jq:commands(function()
        jq:enqueue("job")
      end)
      assert.is_true(after <= before + 5, before .. " and " .. after .. " commands")
    end)
  end)
end)
