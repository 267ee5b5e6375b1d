local msgpack = require "support.msgpack"
local space = require "support.space"

describe("usage", function()
  local jq = space.each()

  ---@param count number of keys
  local function use_keys(count)
    jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
    local arguments = {}
    for i = 1, count do
      arguments[i] = { v = string.format("v%04d", i) }
    end
    for first = 1, count, 500 do
      jq:enqueue_each("a", unpack(arguments, first, math.min(count, first + 499)))
    end
    return jq:start("a")
  end

  local function page(spec)
    local reply = jq:call("usage", spec)
    local values = {}
    for i = 2, #reply do
      values[i - 1] = msgpack.unpack(reply[i]).by
    end
    return values, reply[1]
  end

  it("shows each key by its value", function()
    jq:constrain({ id = "c", by = "argument.v", concurrency = 2 }, { name = "a" })
    local ids = jq:enqueue_each("a", { v = 1 }, { v = 1 }, { v = 1 }, { v = "x" }, {})
    jq:start("a")
    assert.are.same({ by = 1, running = 2, lanes = 1, held = 1, next = ids[3] }, jq:key("c", 1))
    assert.are.same({ by = "x", running = 1, lanes = 0, held = 0 }, jq:key("c", "x"))
    assert.are.equal(3, #jq:usage("c"))
  end)
  it("shows combinations as lists", function()
    jq:constrain({ id = "c", by = { "argument.v", "queue" }, concurrency = 1 }, { name = "a" })
    jq:enqueue_each("a", { v = 1 }, { v = 2 })
    jq:start("a")
    assert.are.equal(1, jq:key("c", { 1, "a" }).running)
    assert.are.equal(1, jq:key("c", { 2, "a" }).running)
  end)

  --- What usage answers, as bytes, when a job runs whose argument is the key's value.
  local function shown(value)
    jq:constrain({ id = "c", by = "argument", concurrency = 1 }, { name = "a" })
    jq:enqueue("a", value)
    jq:start("a")
    return jq:call("usage", { id = "c" })[2]
  end

  it("shows nil, and bytes that are no text as binary data", function()
    assert.is_truthy(shown("\192"):find("\162by\192", 1, true))
    jq:call("unconstrain", { id = "c" })
    assert.is_truthy(shown("\196\3a\255b"):find("\162by\198%z%z%z\3a\255b"))
  end)
  it("shows what is longer than 64 bytes as its SHA-1", function()
    jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
    jq:enqueue_each("a", { v = ("x"):rep(64) }, { v = ("x"):rep(65) }, { v = ("y"):rep(100000) })
    jq:start("a")
    assert.is_not_nil(jq:key("c", ("x"):rep(64)))
    local hashed = {}
    for _, document in ipairs(jq:usage("c")) do
      hashed[#hashed + 1] = document.by:find("^sha1:%x+$") and #document.by == 45 and document.by or nil
    end
    assert.are.equal(2, #hashed)
    assert.are_not.equal(hashed[1], hashed[2])
  end)

  describe("counts", function()
    it("starts in the window that ends now", function()
      jq:constrain({ id = "c", by = "argument.v", rate = { limit = 10, period = 10 } }, { name = "a" })
      jq:enqueue_each("a", { v = 1 }, { v = 1 }, { v = 2 })
      jq:start("a")
      assert.are.same({ 2, 1 }, { jq:key("c", 1).starts, jq:key("c", 2).starts })
      jq:pass(5)
      jq:enqueue("a", { v = 1 })
      jq:start("a")
      assert.are.equal(3, jq:key("c", 1).starts)
      jq:pass(5)
      assert.are.equal(1, jq:key("c", 1).starts)
    end)
  end)

  describe("lists", function()
    it("100 keys when nothing is said, and as many as a call can pay for", function()
      use_keys(1001)
      jq:start("a")
      assert.are.equal(100, #page({ id = "c" }))
      local values, cursor = page({ id = "c", count = 1000 })
      assert.is_true(#values > 100 and #values < 1000 and cursor ~= "")
      assert.are.equal(1001, #jq:usage("c"))
    end)
  end)

  describe("finds", function()
    it("keys whose text, or number, begins so", function()
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
      jq:enqueue_each("a", { v = "acme" }, { v = "acm" }, { v = "bcme" }, { v = 12 }, { v = "12" }, { v = 1.25 }, {})
      jq:start("a")
      assert.are.same({ "acm", "acme" }, (page({ id = "c", prefix = "ac" })))
      assert.are.same({ 1.25, 12, "12" }, (page({ id = "c", prefix = "1" })))
      assert.are.same({}, (page({ id = "c", prefix = "cme" })))
      local first, cursor = page({ id = "c", prefix = "1", count = 2 })
      assert.are.same({ { 1.25, 12 }, { "12" } }, { first, (page({ id = "c", prefix = "1", cursor = cursor })) })
    end)
    it("keys of several values by the first, in pages, whatever the server's locale", function()
      jq:constrain({ id = "c", by = { "argument.v", "argument.w" }, concurrency = 1 }, { name = "a" })
      for _, text in ipairs({ "A", "Az", "b", "Azzz", "aaaa", "Bzz", "Ab", "B" }) do
        jq:enqueue_each("a", { v = text, w = 1 }, { v = text, w = "B" }, { v = text })
      end
      jq:start("a")
      local all, found, cursor = page({ id = "c", prefix = "A", count = 100 }), {}, ""
      assert.are.equal(12, #all)
      repeat
        local values
        values, cursor = page({ id = "c", prefix = "A", count = 1, cursor = cursor })
        found[#found + 1] = values[1]
      until cursor == ""
      assert.are.same(all, found)
    end)
  end)
end)
