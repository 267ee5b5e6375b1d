-- Workers that do not take jobs of some names: `without`, and who is told of jobs that nobody takes.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a pick without names", function()
  local jq = space.each()

  local function taken(spec)
    return jq:pick_ids(space.with({ worker = "old", queues = "a", without = { "new" } }, spec))
  end
  local function add(name, more)
    return jq:enqueue(space.with({ name = name, queue = "a" }, more))
  end

  it("looks among the first hundred of a queue", function()
    jq:enqueue_many({ name = "new", queue = "a" }, 99)
    local seen = add("old")
    assert.are.same({ seen }, taken())
    add("new")
    local unseen = add("old")
    assert.are.same({}, taken())
    jq:pick_ids({ worker = "w", queues = "a" })
    assert.are.same({ unseen }, taken())
  end)
  it("sleeps until a job comes that it takes, also behind one of these names in a lane", function()
    jq:call("queue", { name = "a", fair = { by = "argument.customer" } })
    add("new")
    jq:call("pick", { worker = "old", queues = "a", without = { "new" }, wait = { on = "c", ms = 60000 } })
    assert.is_false(jq:is_woken("c"))
    add("old")
    assert.is_true(jq:is_woken("c"))
  end)
  it("wakes a server for a pushed worker that takes what is behind, also after it was given some", function()
    jq:call("queue", { name = "a", fair = { by = "argument.customer" } })
    jq:register({ url = "http://w/", queues = "a", refused = { "new" }, max_jobs = 9 })
    for _ = 1, 2 do
      add("new")
      add("old")
      jq:call("assign", { master = "m" })
      jq:call("assign", { master = "m", wait = { on = "push", ms = 60000 } })
      assert.is_false(jq:is_woken("push"))
      add("old")
      assert.is_true(jq:is_woken("push"))
    end
  end)
  it("sees behind queues of a pattern that are empty by now", function()
    jq:call("pick", { worker = "old", queues = "q*", without = { "new" } })
    for queue = 1, 150 do
      jq:succeed(jq:take(jq:enqueue({ name = "q" .. queue }) and "q" .. queue))
    end
    local last = jq:enqueue({ name = "old", queue = "q0" })
    local found
    for _ = 1, 3 do
      found = found or taken({ queues = "q*" })[1]
    end
    assert.are.equal(last, found)
  end)
  it("passes over jobs under constraints, also of one lane", function()
    jq:call_list("constrain", { msgpack.pack({ id = "c", concurrency = 2 }), msgpack.pack({ queue = "a" }) })
    local new, old, more = add("new"), add("old"), add("old")
    local jobs = jq:pick({ worker = "old", queues = "a", without = { "new" }, count = 5 })
    assert.are.same({ old, more }, space.ids(jobs))
    assert.are.same({}, jq:pick_ids({ worker = "w", queues = "a" }))
    jq:succeed(jobs[1])
    assert.are.same({ new }, jq:pick_ids({ worker = "w", queues = "a" }))
  end)
  describe("that sleeps", function()
    local function sleep(worker, channel, without, ms)
      return jq:pick({ worker = worker, queues = "a", without = without, wait = { on = channel, ms = ms or 60000 } })
    end

    it("does so with jobs that it does not take, and leaves their wake-ups to others", function()
      add("new")
      assert.are.equal(0, #sleep("old", "old", { "new" }))
      assert.is_false(jq:is_woken("old"))
      jq:pick_ids({ worker = "w", queues = "a" })
      sleep("w", "all")
      local new = add("new")
      assert.are.same({ true, true }, { jq:is_woken("old"), jq:is_woken("all") })
      assert.are.equal(0, #sleep("old", "old", { "new" }))
      assert.is_false(jq:is_woken("old"))
      assert.are.equal(new, sleep("w", "all")[1].id)
    end)
    it("wakes no other for what is left, when none of them takes it", function()
      sleep("o1", "old", { "new" })
      sleep("o2", "old", { "new" })
      sleep("o3", "old", { "new" })
      add("new")
      add("old", { timeout = 1000000 }) -- else somebody has to be up at the end of its lease
      assert.is_true(jq:is_woken("old"))
      assert.are.equal(1, #sleep("o1", "old", { "new" }))
      assert.is_false(jq:is_woken("old"))
      add("old", { timeout = 1000000 })
      add("old")
      assert.is_true(jq:is_woken("old"))
      assert.are.equal(1, #sleep("o2", "old", { "new" }))
      assert.is_true(jq:is_woken("old"))
    end)
    it("is woken when a key opens for what it takes, behind lanes of what it does not", function()
      jq:constrain({ id = "c", concurrency = 1, by = "name" }, { priority = { ge = 0 } })
      add("old", { timeout = 1000000 })
      local running = jq:take("a")
      add("new")
      add("old")
      assert.are.equal(0, #sleep("o1", "old", { "new" }, 1000)) -- it gets up before the done job is looked at
      jq:succeed(running)
      assert.is_true(jq:is_woken("old"))
      assert.are.equal(1, #sleep("o1", "old", { "new" }))
    end)
  end)
end)

describe("a job that no worker knows", function()
  local jq = space.each()

  local function seen(id)
    local queue = msgpack.unpack(jq:call("queues", { names = { "a" }, minutes = 5 })[2])
    return { queue.cause or "", queue.unknown or "", msgpack.unpack(jq:call("explain", id)).unknown or false }
  end
  local function announce(refused, name)
    jq:call("register", { name = name or "w1", queues = "a", announce = true, refused = refused })
  end

  local id
  before_each(function()
    id = jq:enqueue({ name = "new", queue = "a" })
    jq:pass(10)
  end)

  it("is told of when all who announce themselves refuse it", function()
    announce({ "new", "x" })
    assert.are.same({ "unknown job", "new", true }, seen(id))
    announce({ "x" }, "w2")
    assert.are.same({ "slow", "", false }, seen(id))
    jq:pass(180) -- that one is gone
    announce({ "new" })
    assert.are.same({ "unknown job", "new", true }, seen(id))
    assert.are.same({ "new" }, msgpack.unpack(jq:call("workers", { ids = { "w1" } })[2]).refused)
  end)
  it("is told of when those who sleep do not take it", function()
    jq:call("pick", { worker = "w", queues = "a", without = { "new" }, wait = { on = "c", ms = 60000 } })
    assert.are.same({ "unknown job", "new", true }, seen(id))
    jq:call("pick", { worker = "v", queues = "*", without = { "old", "new" }, wait = { on = "d", ms = 60000 } })
    assert.are.same({ "unknown job", "new", true }, seen(id))
    jq:call("pick", { worker = "u", queues = "b", wait = { on = "e", ms = 60000 } })
    assert.are.same({ "unknown job", "new", true }, seen(id))
  end)
end)
