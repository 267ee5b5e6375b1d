local msgpack = require "support.msgpack"
local space = require "support.space"

describe("another queue", function()
  local jq = space.each()

  local function change(id, more)
    more.id = id
    return jq:call("change", more, "")[1]
  end

  local function retry(id, queue)
    return jq:call("retry", { ids = { id }, queue = queue })[1]
  end

  local function moved(queue)
    local bucket = jq:call("stats", { by = "hour", queue = queue })[1]
    return bucket and msgpack.unpack(bucket).moved or 0
  end

  local function events(id)
    local names = {}
    for i, event in ipairs(msgpack.unpack(jq:call("history", id)).events) do
      names[i] = event.message and event.event .. " " .. event.message or event.event
    end
    return names
  end

  local function failed(spec)
    spec.max_retry = 0
    local id = jq:enqueue(spec)
    jq:fail(jq:take(spec.queue or spec.name))
    return id
  end

  describe("by change", function()
    it("is where a queued job waits, with its name and argument", function()
      local id = jq:enqueue("a", "\7")
      assert.are.equal("queued", change(id, { queue = "b" }))
      assert.are.same({ {}, { queued = 1 } }, { jq:counts("a"), jq:counts("b") })
      assert.is_nil(jq:take("a"))
      local job = jq:take("b")
      assert.are.same({ id, "a", "b", "\7" }, { job.id, job.name, job.queue, job.blob })
    end)
    it("is found by patterns, and leaves nothing behind that hides others", function()
      jq:pick_ids("m*")
      jq:pick_ids("a*")
      local ids = jq:enqueue_all("a", "a", "mail")
      change(ids[1], { queue = "mx" })
      assert.are.same({ ids[1], ids[3] }, jq:pick_ids({ queues = "m*", count = 9 }))
      assert.are.same({ ids[2] }, jq:pick_ids("a*"))
    end)
    it("is where one expires", function()
      local id = jq:enqueue({ name = "a", expires_in = 5 })
      local other = jq:enqueue({ name = "a", expires_in = 5, delay = 60 })
      change(id, { queue = "b" })
      change(other, { queue = "b" })
      jq:pass(5)
      jq:settle()
      assert.are.same({ "error", "error" }, jq:statuses({ id, other }))
      assert.are.same({ {}, { error = 2 } }, { jq:counts("a"), jq:counts("b") })
    end)
    it("counts as moved in the statistics of the one that it left, and stands in the history", function()
      local id = jq:enqueue("a")
      change(id, { queue = "b" })
      assert.are.same({ 1, 0 }, { moved("a"), moved("b") })
      jq:succeed(jq:take("b"))
      assert.are.same({ "enqueued", "moved from a", "started", "done" }, events(id))
    end)
    it("is found there by tag when its record goes", function()
      jq:set({ done_ttl = 1 })
      local id = jq:enqueue({ name = "a", tags = { "t" }, unique = "k", unique_for = 900 })
      change(id, { queue = "b" })
      jq:succeed(jq:take("b"))
      jq:pass(10)
      jq:settle()
      assert.is_nil(jq:get(id))
      assert.are.same({ "" }, jq:call("tags", {}))
      assert.are.equal(1, jq:call("enqueue", { name = "a", unique = "k" }, msgpack.NIL)[2])
    end)
  end)

  describe("under constraints", function()
    it("is where they match, or do not match, it", function()
      jq:constrain({ id = "c", concurrency = 1 }, { queue = "b" })
      local ids = jq:enqueue_all("b", "a", "b")
      assert.are.same({ ids[1] }, jq:start_ids("b"))
      change(ids[2], { queue = "b" })
      assert.are.same({}, jq:start_ids("b"))
      change(ids[3], { queue = "a" })
      assert.are.same({ ids[3] }, jq:start_ids("a"))
      jq:succeed({ id = ids[1], attempt = 1 })
      assert.are.same({ ids[2] }, jq:start_ids("b"))
      assert.are.equal(1, jq:constraint("c").running)
    end)
    it("leaves the room of its lane to others", function()
      jq:constrain({ id = "c", concurrency = 1 }, { name = "x" })
      local first = jq:enqueue({ name = "x", queue = "a" })
      jq:start_one("a")
      local ids = jq:enqueue_all({ name = "x", queue = "a" }, { name = "x", queue = "a" })
      assert.are.same({}, jq:start_ids("a"))
      change(ids[1], { queue = "b" })
      jq:succeed({ id = first, attempt = 1 })
      assert.are.same({ ids[1] }, jq:start_ids({ "b", "a" }))
    end)
  end)

  describe("by retry", function()
    it("is where a failed job waits again", function()
      local id = failed({ name = "a" })
      assert.are.equal("queued", retry(id, "b"))
      assert.are.same({ {}, { queued = 1 } }, { jq:counts("a"), jq:counts("b") })
      local job = jq:take("b")
      assert.are.same({ id, "a", "b" }, { job.id, job.name, job.queue })
      assert.are.same({ 1, 0 }, { moved("a"), moved("b") })
      assert.are.same({ "enqueued", "started", "failed", "moved from a", "started" }, events(id))
    end)
    it("is where one expires that was cancelled in time", function()
      local id = jq:enqueue({ name = "a", expires_in = 100 })
      jq:cancel(id)
      retry(id, "b")
      jq:pass(100)
      jq:settle()
      assert.are.same({ error = 1 }, jq:counts("b"))
    end)
    it("stands in the trail", function()
      local id = failed({ name = "a" })
      jq:call("retry", { where = { queue = "a" }, queue = "b", actor = "ann" })
      local entry = msgpack.unpack(jq:call("trail", {})[2])
      assert.are.same({ "retry", "a", "b", 1 }, { entry.what, entry.on, entry.change.queue, entry.count })
      assert.are.equal("queued", jq:status(id))
    end)
  end)
end)
