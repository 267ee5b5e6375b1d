local space = require "support.space"

describe("explain", function()
  local jq = space.each()

  --- What explain says of one constraint of a job.
  local function of(id, constraint)
    for _, document in ipairs(jq:explain(id).constraints) do
      if document.id == constraint then
        return document
      end
    end
  end

  describe("says of a job", function()
    it("that is free when nothing holds it", function()
      local ids = jq:enqueue_all({ name = "a", queue = "q" }, { name = "b", queue = "q" })
      assert.are.same({ id = ids[2], status = "queued", queue = "q", name = "b", paused = false, constraints = {},
        held = false, ahead = 1, start_ms = space.START_MS, workers = 0, waiting = 0, running = 0 },
        jq:explain(ids[2]))
    end)
    it("that is held by which constraint, and that it depends on others", function()
      jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
      local ids = jq:enqueue_all("a", "a")
      jq:start("a")
      local document = jq:explain(ids[2])
      assert.are.same({ { id = "c", concurrency = 1, running = 1, open = false } }, document.constraints)
      assert.are.same({ true, 0, 1 }, { document.held, document.ahead, document.running })
      assert.is_nil(document.start_ms)
    end)
  end)

  describe("says of a constraint", function()
    it("its rate, the starts that count, and when it opens", function()
      jq:constrain({ id = "c", rate = { limit = 2, period = 10 } }, { name = "a" })
      local ids = jq:enqueue_many({ name = "a" }, 3)
      jq:start("a")
      jq:pass(4)
      assert.are.same({ id = "c", rate = { limit = 2, period = 10 }, running = 2, starts = 2,
        opens_ms = space.START_MS + 10000, open = false }, of(ids[3], "c"))
      local document = jq:explain(ids[3])
      assert.are.same({ true, space.START_MS + 10000 }, { document.held, document.start_ms })
      jq:pass(6)
      document = jq:explain(ids[3])
      assert.are.same({ false, jq.now_ms, true, 0 }, { document.held, document.start_ms, document.constraints[1].open,
        document.constraints[1].starts })
    end)
    it("that it is held by hand, also when it opens later or takes another job to end", function()
      jq:constrain({ id = "c", concurrency = 1, rate = { limit = 1, period = 60 } }, { name = "a" })
      local ids = jq:enqueue_many({ name = "a" }, 2)
      jq:start("a")
      jq:hold("c", 20)
      local shown = of(ids[2], "c")
      assert.are.same({ 20000, 60000 }, { shown.hold_ms - space.START_MS, shown.opens_ms - space.START_MS })
      jq:pass(20)
      assert.is_nil(of(ids[2], "c").hold_ms)
    end)
  end)

  describe("says when a job may start", function()
    it("by the latest of what it waits for", function()
      jq:constrain({ id = "c", rate = { limit = 1, period = 10 } }, { name = "a" })
      jq:constrain({ id = "d", rate = { limit = 1, period = 20 } }, { name = "a" })
      jq:enqueue("a")
      jq:start("a")
      assert.are.equal(space.START_MS + 20000, jq:explain(jq:enqueue("a")).start_ms)
      assert.are.equal(space.START_MS + 25000, jq:explain(jq:enqueue({ name = "a", delay = 25 })).start_ms)
      assert.are.equal(space.START_MS + 20000, jq:explain(jq:enqueue({ name = "a", delay = 15 })).start_ms)
    end)
    it("not when one of them depends on other jobs", function()
      jq:constrain({ id = "c", rate = { limit = 1, period = 10 } }, { name = "a" })
      jq:constrain({ id = "d", concurrency = 1 }, { name = "a" })
      jq:enqueue("a")
      jq:start("a")
      assert.is_nil(jq:explain(jq:enqueue("a")).start_ms)
    end)
  end)

  describe("counts the jobs ahead", function()
    it("in its lane, for a job that is held", function()
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
      jq:enqueue_each("a", { v = 1 }, { v = 2 })
      jq:start("a")
      local ids = jq:enqueue_each("a", { v = 1 }, { v = 2 }, { v = 1 }, { v = 2 }, { v = 1 })
      local better = jq:enqueue({ name = "a", priority = -1 }, { v = 1 })
      jq:start("a")
      assert.are.same({ 1, 2, 3, 0, 0, 1 }, { jq:explain(ids[1]).ahead, jq:explain(ids[3]).ahead,
        jq:explain(ids[5]).ahead, jq:explain(better).ahead, jq:explain(ids[2]).ahead, jq:explain(ids[4]).ahead })
    end)
  end)

  describe("counts who might run it:", function()
    it("registered workers that serve its queue", function()
      local id = jq:enqueue("mail.de")
      assert.are.equal(0, jq:explain(id).workers)
      jq:register({ url = "http://1/", queues = "*" })
      jq:register({ url = "http://2/", queues = { "mail.*", "x" } })
      jq:register({ url = "http://3/", queues = { "mail.de", "mail.*" } })
      jq:register({ url = "http://4/", queues = "mail.fr" })
      jq:register({ name = "picker", queues = "mail.de" })
      assert.are.equal(4, jq:explain(id).workers)
    end)
  end)
end)
