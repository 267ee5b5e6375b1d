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

  local function failed(spec)
    spec.max_retry = 0
    local id = jq:enqueue(spec)
    jq:fail(jq:take(spec.queue or spec.name))
    return id
  end

  describe("by change", function()
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
