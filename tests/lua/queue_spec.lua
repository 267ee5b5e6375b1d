local msgpack = require "support.msgpack"
local space = require "support.space"
local specs = require "support.specs"

describe("queue", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)
  local function current()
    return jq
  end

  it("shows a queue", function()
    jq:enqueue_all("a", "a", { name = "a", delay = 5 })
    assert.are.same({ name = "a", paused = false, max_waiting = 0, queued = 2, scheduled = 1, blocked = 0,
      running = 0, retrying = 0, done = 0, error = 0, cancelled = 0 }, jq:queue("a"))
  end)
  it("counts jobs in every state", function()
    jq:enqueue_many({ name = "a", max_retry = 0 }, 20)
    local jobs = jq:pick({ queues = "a", count = 10 })
    jq:succeed(jobs[1])
    jq:fail(jobs[2])
    jq:fail(jobs[3])
    jq:call("cancel", { ids = { jobs[4].id, jobs[5].id, jobs[6].id } })
    jq:enqueue_all({ name = "a", delay = 1 }, { name = "a", delay = 1 })
    assert.are.same({ queued = 10, scheduled = 2, running = 4, done = 1, error = 2, cancelled = 3 },
      jq:counts("a"))
  end)
  it("counts a done job once, with and after its result", function()
    jq:enqueue({ name = "a", keep_result = true })
    jq:succeed(jq:take("a"), "\5")
    assert.are.equal(1, jq:queue("a").done)
    jq:pass(3600)
    jq:settle()
    assert.are.equal(1, jq:queue("a").done)
  end)
  it("counts a retrying job", function()
    jq:enqueue("a")
    jq:fail(jq:take("a"))
    assert.are.same({ retrying = 1 }, jq:counts("a"))
  end)
  it("creates a queue that is not known yet", function()
    assert.are.equal(0, jq:queue("new").queued)
    assert.are.equal(2, #jq:call("queues", { names = { "new" } }))
  end)
  it("shown a second time changes nothing", function()
    jq:queue("a")
    jq:unchanged(function()
      jq:queue("a")
    end)
  end)

  describe("paused", function()
    it("takes jobs and starts none", function()
      jq:queue({ name = "a", paused = true })
      local id = jq:enqueue("a")
      assert.are.same({}, jq:pick_ids("a"))
      assert.are.same({}, jq:pick_ids("*"))
      assert.are.equal("queued", jq:status(id))
    end)
    it("is answered in the document", function()
      assert.is_true(jq:queue({ name = "a", paused = true }).paused)
      assert.is_true(jq:queue("a").paused)
      assert.is_false(jq:queue({ name = "a", paused = false }).paused)
    end)
    it("and resumed gives all that waits, in order", function()
      local ids = jq:enqueue_all("a", { name = "a", priority = -1 })
      jq:queue({ name = "a", paused = true })
      local third = jq:enqueue("a")
      jq:queue({ name = "a", paused = false })
      assert.are.same({ ids[2], ids[1], third }, jq:pick_ids({ queues = "*", count = 9 }))
    end)
    it("lets running jobs finish", function()
      jq:enqueue("a")
      local job = jq:take("a")
      jq:queue({ name = "a", paused = true })
      assert.are.equal(30000, jq:heartbeat(job))
      assert.are.equal("done", jq:succeed(job))
    end)
    it("moves what is due, for later", function()
      local id = jq:enqueue({ name = "a", delay = 1 })
      jq:queue({ name = "a", paused = true })
      jq:pass(1)
      assert.are.same({}, jq:pick_ids("a"))
      assert.are.equal("queued", jq:status(id))
    end)
    it("is no concern of other queues", function()
      jq:enqueue_all("a", "b")
      jq:queue({ name = "a", paused = true })
      assert.are.equal("b", jq:take("*").name)
    end)
    it("twice is paused once", function()
      local id = jq:enqueue("a")
      jq:queue({ name = "a", paused = true })
      jq:unchanged(function()
        jq:queue({ name = "a", paused = true })
      end)
      jq:queue({ name = "a", paused = false })
      assert.are.same({ id }, jq:pick_ids("*"))
    end)
    it("can be said before the first job", function()
      jq:queue({ name = "a", paused = true })
      jq:queue({ name = "a", paused = false })
      assert.are.same({ jq:enqueue("a") }, jq:pick_ids("*"))
    end)
    it("holds for workers that are pushed to", function()
      jq:register({ url = "http://w/" })
      jq:enqueue("a")
      jq:queue({ name = "a", paused = true })
      assert.are.same({}, space.ids(jq:assign()))
    end)
  end)

  describe("max_waiting", function()
    it("is kept and shown", function()
      assert.are.equal(5, jq:queue({ name = "a", max_waiting = 5 }).max_waiting)
      assert.are.equal(5, jq:queue("a").max_waiting)
    end)
    it("survives a pause", function()
      jq:queue({ name = "a", max_waiting = 5 })
      jq:queue({ name = "a", paused = true })
      assert.are.equal(5, jq:queue({ name = "a", paused = false }).max_waiting)
    end)
    it("below what waits removes nothing", function()
      jq:enqueue_all("a", "a")
      jq:queue({ name = "a", max_waiting = 1 })
      assert.are.equal(2, #jq:pick({ queues = "a", count = 5 }))
    end)
    it("may be 4294967295", function()
      assert.are.equal(4294967295, jq:queue({ name = "a", max_waiting = 4294967295 }).max_waiting)
    end)
  end)

  local function with(field)
    return function(value)
      local spec = { name = "a" }
      spec[field] = value
      return { spec }
    end
  end
  local name = "INVALID name: expected text of 1 to 255 bytes, valid UTF-8, no control characters, no *, got "
  specs.refused_values(it, current, "queue", with("name"), {
    { "a missing name", nil, name .. "nothing" },
    { "an empty name", "", name .. '""' },
    { "a pattern as name", "a.*", name .. '"a.*"' },
    { "a number as name", 1, name .. "1" },
    { "a name of 256 bytes", ("q"):rep(256), name },
  })
  specs.refused_values(it, current, "queue", with("paused"), {
    { "1 as paused", 1, "INVALID paused: expected true or false, got 1" },
    { "text as paused", "yes", 'INVALID paused: expected true or false, got "yes"' },
  })
  local limit = "INVALID max_waiting: expected an integer from 0 (no limit) to 4294967295, got "
  specs.refused_values(it, current, "queue", with("max_waiting"), {
    { "a negative limit", -1, limit .. "-1" },
    { "half a limit", 0.5, limit .. "0.5" },
    { "a limit beyond 32 bits", 4294967296, limit .. "4294967296" },
    { "a limit that is no number", msgpack.NAN, limit },
    { "text as limit", "5", limit .. '"5"' },
  })
  specs.one_spec(it, current, "queue", { name = "a" })
end)
