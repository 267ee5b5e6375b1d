-- What one call does is bounded by what it costs: dear steps are fewer, and what is left comes with the next call.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a call that finds much to do #once", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  local LONG_S = 100000 -- leases that outlast every test
  local TAGS = {}
  for i = 1, 32 do
    TAGS[i] = ("x"):rep(200) .. i
  end
  -- Far above what a call that is cut short does, far below what doing all would be.
  local MOST = 3000

  --- Ticks to the end; no tick may do more than that.
  ---@return number calls
  local function settle_bounded()
    for calls = 1, 1000 do
      local next_ms
      local commands = jq:commands(function()
        next_ms = jq:tick(1000)
      end)
      assert.is_true(commands <= MOST, commands .. " commands")
      if next_ms ~= 0 then
        return calls
      end
    end
    error("the clock's work never ends")
  end

  describe("moves the fewer jobs the more they carry:", function()
    --- How many of a thousand jobs one tick moves.
    local function moved(spec, argument)
      spec.name, spec.delay = "a", 10
      jq:enqueue_many(spec, 1000, argument)
      jq:pass(10)
      local next_ms, count = jq:tick(1000)
      assert.are.equal(0, next_ms)
      settle_bounded()
      assert.are.same({ queued = 1000 }, jq:counts("a"))
      return count
    end

    it("tags", function()
      local plain = moved({})
      jq:close()
      jq = space.new()
      assert.is_true(2 * moved({ tags = TAGS }) < plain)
    end)
    for what, set in pairs({
      ["a limit"] = function()
        jq:constrain({ id = "c", concurrency = 1000, by = "argument.key" }, { name = "a" })
      end,
      ["a fair queue"] = function()
        jq:queue({ name = "a", fair = { by = "argument.key" } })
      end,
    }) do
      it("arguments that " .. what .. " reads", function()
        local counts = {}
        for _, long in ipairs({ ("x"):rep(20000), "" }) do
          jq:close()
          jq = space.new()
          set()
          counts[#counts + 1] = moved({}, { key = 7, long = long })
        end
        assert.is_true(4 * counts[1] < counts[2])
      end)
    end
  end)
  it("places few jobs with long arguments again under a new limit", function()
    jq:enqueue_many({ name = "a" }, 40, { key = 7, long = ("x"):rep(100000) })
    jq:constrain({ id = "c", concurrency = 1000, by = "argument.key" }, { name = "a" })
    local jobs = jq:pick({ queues = "a", count = 40 })
    assert.is_true(#jobs > 0 and #jobs < 10)
    assert.are.equal(40 - #jobs, #jq:start({ queues = "a", count = 40 }))
  end)
  it("makes the jobs of schedules in many calls", function()
    for i = 1, 200 do
      jq:call("schedule", { id = "s" .. i, every = 3600, job = { name = "a", tags = TAGS } }, msgpack.NIL)
    end
    jq:pass(3600)
    assert.is_true(settle_bounded() > 3)
    assert.are.same({ queued = 200 }, jq:counts("a"))
  end)
  it("gives fewer jobs of many queues than were asked for, and all of them in the end", function()
    local specs = {}
    for i = 1, 500 do
      specs[i] = { name = "a", queue = "q" .. i, timeout = LONG_S }
    end
    local ids = jq:enqueue_all(unpack(specs))
    jq:pick({ queues = "*", count = 1 })
    local jobs = jq:pick({ queues = "*", count = 499 })
    assert.is_true(#jobs > 0 and #jobs < 499)
    assert.are.equal(0, jobs.next_ms)
    assert.are.equal(499 - #jobs, #jq:start({ queues = "*", count = 499 }))
    assert.are.equal("running", jq:status(ids[500]))
  end)
  it("gives fewer jobs under a limit than were asked for", function()
    jq:constrain({ id = "c", concurrency = 1000 }, { name = "a" })
    jq:enqueue_many({ name = "a" }, 500)
    local jobs = jq:pick({ queues = "a", count = 500 })
    assert.is_true(#jobs > 0 and #jobs < 500)
    assert.are.equal(0, jobs.next_ms)
  end)

  describe("that lists", function()
    --- Ids of all jobs, over pages; and how many each page had.
    local function list(spec)
      local ids, sizes = {}, {}
      repeat
        local reply = jq:call("jobs", spec)
        sizes[#sizes + 1] = #reply - 1
        for i = 2, #reply do
          ids[#ids + 1] = msgpack.unpack(reply[i]).id
        end
        spec.cursor = reply[1]
      until spec.cursor == ""
      return ids, sizes
    end

    it("jobs with long arguments ends its pages early", function()
      local ids = {}
      for i = 1, 30 do
        ids[i] = jq:enqueue({ name = "a" }, { text = ("a"):rep(100000) })
      end
      local found, sizes = list({ count = 1000 })
      assert.are.same(ids, found)
      assert.is_true(#sizes > 2 and sizes[1] < 15)
      local _, brief_sizes = list({ count = 1000, brief = true })
      assert.are.same({ 30 }, brief_sizes)
    end)
  end)

  describe("gives out no more than some megabytes of arguments at once:", function()
    local ARGUMENT = msgpack.pack(("x"):rep(500000))
    local MOST_JOBS = 9 -- 4 MiB, and the one that goes beyond

    --- Enqueues fifty jobs and starts all of them.
    ---@param start fun(): table[] jobs that one call starts, with next_ms
    local function all_in_order(start)
      local ids, started, priorities = {}, {}, {}
      for i = 1, 50 do
        ids[i] = jq:enqueue({ name = "a", timeout = LONG_S, priority = i % 3 }, ARGUMENT)
        priorities[ids[i]] = i % 3
      end
      table.sort(ids, function(one, other)
        local a, b = priorities[one], priorities[other]
        return a < b or a == b and one < other
      end)
      for _ = 1, 20 do
        local jobs = start()
        assert.is_true(#jobs <= MOST_JOBS)
        for _, job in ipairs(jobs) do
          assert.are.equal(ARGUMENT, job.blob)
          started[#started + 1] = job.id
        end
        if jobs.next_ms ~= 0 then
          break
        end
      end
      assert.are.same(ids, started)
    end

    for what, spec in pairs({
      ["of one queue"] = { queues = "a" },
      ["of several"] = { queues = { "a", "b" } },
      ["of a pattern"] = { queues = "*" },
    }) do
      it(what, function()
        all_in_order(function()
          return jq:pick({ queues = spec.queues, count = 50 })
        end)
      end)
    end
    it("and what goes back is found by all who come next", function()
      jq:sleep("other", "d", "b")
      jq:sleep("next", "c", "*")
      for _ = 1, 20 do
        jq:enqueue({ name = "a", timeout = LONG_S }, ARGUMENT)
      end
      local pick = { queues = "*", count = 50, wait = { on = "c", ms = 1000 } }
      local first = jq:pick(pick)
      assert.are.equal(1, first.next_ms)
      assert.is_true(jq:is_woken("c"))
      assert.are.same({}, jq:audit())
      assert.are.equal(20, #first + #jq:start({ queues = "*" }))
    end)
    for what, constraint in pairs({ ["a queue"] = false, ["a lane"] = { id = "c", concurrency = 1000 } }) do
      it("of " .. what .. " whose arguments get longer", function()
        if constraint then
          jq:constrain(constraint, { name = "a" })
        end
        jq:enqueue_many({ name = "a", timeout = LONG_S }, 100)
        for _ = 1, 60 do
          jq:enqueue({ name = "a", timeout = LONG_S }, ARGUMENT)
        end
        jq:settle()
        local bytes = 0
        for _, job in ipairs(jq:pick({ queues = "a", count = 1000 })) do
          bytes = bytes + #job.blob
        end
        assert.is_true(bytes <= 33 * #ARGUMENT, bytes .. " bytes")
        assert.are.same({}, jq:audit())
      end)
    end
  end)
end)
