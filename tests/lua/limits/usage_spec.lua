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

  it("is empty while no key is in use", function()
    jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
    assert.are.same({ "" }, jq:call("usage", { id = "c" }))
    jq:enqueue("b")
    jq:start("b")
    assert.are.same({ "" }, jq:call("usage", { id = "c" }))
  end)
  it("shows the one key of a constraint without by", function()
    jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
    local ids = jq:enqueue_many({ name = "a" }, 3)
    jq:start("a")
    assert.are.same({ { running = 1, lanes = 1, held = 2, next = ids[2] } }, jq:usage("c"))
  end)
  it("shows each key by its value", function()
    jq:constrain({ id = "c", by = "argument.v", concurrency = 2 }, { name = "a" })
    local ids = jq:enqueue_each("a", { v = 1 }, { v = 1 }, { v = 1 }, { v = "x" }, {})
    jq:start("a")
    assert.are.same({ by = 1, running = 2, lanes = 1, held = 1, next = ids[3] }, jq:key("c", 1))
    assert.are.same({ by = "x", running = 1, lanes = 0, held = 0 }, jq:key("c", "x"))
    assert.are.equal(3, #jq:usage("c"))
  end)
  it("shows until when a key is held by hand", function()
    jq:constrain({ id = "c", by = "argument.v", rate = { limit = 1, period = 60 } }, { name = "a" })
    jq:constrain({ id = "d", concurrency = 1 }, { name = "a" })
    jq:enqueue_each("a", { v = 1 })
    jq:start("a")
    jq:hold("c", 20, 1)
    jq:hold("c", 90, 2)
    jq:hold("d", 30)
    local function since(document)
      return { document.hold_ms and document.hold_ms - space.START_MS, document.opens_ms - space.START_MS }
    end
    assert.are.same({ 20000, 60000 }, since(jq:key("c", 1)))
    assert.are.same({ 90000, 90000 }, since(jq:key("c", 2)))
    assert.are.same({ 30000, 30000 }, since(jq:constraint("d")))
    jq:pass(20)
    assert.are.same({ nil, 60000 }, since(jq:key("c", 1)))
    jq:hold("d", 0)
    assert.is_nil(jq:constraint("d").hold_ms)
  end)
  it("counts a job that two hold under the one that came first", function()
    jq:constrain({ id = "z", concurrency = 1 }, { name = "a" })
    jq:constrain({ id = "b", rate = { limit = 1, period = 60 } }, { name = "a" })
    jq:enqueue_many({ name = "a" }, 3)
    jq:start("a")
    assert.are.same({ 2, 0 }, { jq:constraint("z").held, jq:constraint("b").held })
    -- One of which only a limit changes stays the elder; what else changes makes it the younger.
    jq:constrain({ id = "z", concurrency = 1, rate = { limit = 1, period = 60 } }, { name = "a" })
    jq:hold("z", 5)
    jq:settle()
    jq:pick({ queues = "a" })
    assert.are.same({ 0, 2 }, { jq:constraint("z").held, jq:constraint("b").held })
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

  for what, value in pairs({
    ["text"] = "abc", ["an empty text"] = "", ["text of 64 bytes"] = ("x"):rep(64), ["0"] = 0, ["true"] = true,
    ["a negative integer"] = -7, ["2^53 - 1"] = 9007199254740991, ["a float"] = 1.25, ["0.1"] = 0.1, ["false"] = false,
  }) do
    it("shows " .. what .. " as it is", function()
      assert.are.same({ by = value, running = 1, lanes = 0, held = 0 }, msgpack.unpack(shown(msgpack.pack(value))))
    end)
  end
  -- What no double holds is looked at as bytes.
  for what, value in pairs({
    ["2^53 + 1"] = "\207\0\32\0\0\0\0\0\1", ["2^64 - 1"] = "\207\255\255\255\255\255\255\255\255",
    ["-2^63"] = "\211\128\0\0\0\0\0\0\0", ["-2^53 - 1"] = "\211\255\223\255\255\255\255\255\255",
    ["2^63 + 1"] = "\207\128\0\0\0\0\0\0\1", ["nil"] = "\192",
  }) do
    it("shows " .. what .. " as it is", function()
      assert.is_truthy(shown(value):find("\162by" .. value, 1, true))
    end)
  end
  it("shows binary data as such", function()
    assert.is_truthy(shown("\196\3a\255b"):find("\162by[\196-\198]%z*\3a\255b"))
  end)
  it("shows ext as such", function()
    local bytes = shown("\213\5xy")
    assert.is_truthy(bytes:find("\213\5xy", 1, true) or bytes:find("[\199-\201]%z*\2\5xy"))
  end)
  it("shows a map as it is", function()
    assert.are.same({ x = { 1, 2 } }, msgpack.unpack(shown(msgpack.pack({ x = { 1, 2 } }))).by)
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
    it("the cost of starts in the window that ends now", function()
      jq:constrain({ id = "c", by = "argument.v", rate = { limit = 10, period = 10 }, cost = "argument.n" },
        { name = "a" })
      jq:enqueue_each("a", { v = 1, n = 3 }, { v = 1, n = 2.5 }, { v = 2, n = 4 })
      jq:start("a")
      assert.are.same({ 5.5, 4 }, { jq:key("c", 1).starts, jq:key("c", 2).starts })
      jq:pass(5)
      jq:enqueue("a", { v = 1, n = 1 })
      jq:start("a")
      assert.are.equal(6.5, jq:key("c", 1).starts)
      jq:pass(5)
      assert.are.equal(1, jq:key("c", 1).starts)
    end)
    it("no starts without a rate, and with a smooth one", function()
      jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
      jq:constrain({ id = "d", rate = { limit = 1, period = 10, smooth = true } }, { name = "a" })
      jq:enqueue_all("a", "a")
      jq:start("a")
      assert.is_nil(jq:usage("c")[1].starts)
      assert.is_nil(jq:usage("d")[1].starts)
      assert.are.equal(space.START_MS + 10000, jq:usage("d")[1].opens_ms)
    end)
    it("groups of held jobs by queue and by their other keys", function()
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
      jq:constrain({ id = "d", by = "argument.w", concurrency = 5 }, { name = "a" })
      jq:enqueue("a", { v = 1 })
      for _, w in ipairs({ 1, 2, 2, 3 }) do
        jq:enqueue("a", { v = 1, w = w })
        jq:enqueue({ name = "a", queue = "q" }, { v = 1, w = w })
      end
      jq:start({ "a", "q" })
      local key = jq:key("c", 1)
      assert.are.same({ 1, 6, 8 }, { key.running, key.lanes, key.held })
    end)
    it("those of a key that is over its limit", function()
      jq:enqueue_each("a", { v = 1 }, { v = 1 }, { v = 1 }, { v = 2 })
      jq:start({ queues = "a", count = 2 })
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
      jq:start("a")
      assert.are.same({ 2, 1 }, { jq:key("c", 1).running, jq:key("c", 1).held })
      assert.are.same({ 1, 0 }, { jq:key("c", 2).running, jq:key("c", 2).held })
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
    it("keys that are in use all the while, though others come and go", function()
      local jobs = use_keys(30)
      local first, cursor = page({ id = "c", count = 10 })
      local seen = {}
      for _, value in ipairs(first) do
        seen[value] = true
      end
      for i = 1, 30, 3 do
        jq:succeed(jobs[i])
      end
      jq:enqueue("a", { v = "v0000" })
      jq:start("a")
      repeat
        local values
        values, cursor = page({ id = "c", cursor = cursor, count = 10 })
        for _, value in ipairs(values) do
          seen[value] = true
        end
      until cursor == ""
      for i = 1, 30 do
        assert.is_true(i % 3 == 1 or seen[string.format("v%04d", i)] == true)
      end
    end)
    it("a key as long as its window is not past", function()
      jq:constrain({ id = "c", by = "argument.v", rate = { limit = 1, period = 10 } }, { name = "a" })
      jq:enqueue("a", { v = 1 })
      jq:succeed(jq:start("a")[1])
      assert.are.same({ 1 }, (page({ id = "c" })))
      jq:pass(60)
      jq:settle()
      assert.are.same({}, (page({ id = "c" })))
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
    it("keys of several values by the first of them", function()
      jq:constrain({ id = "c", by = { "argument.v", "argument.w" }, concurrency = 1 }, { name = "a" })
      jq:enqueue_each("a", { v = "ab", w = 1 }, { v = "abc", w = "b" }, { v = "b", w = "ab" })
      jq:start("a")
      assert.are.same({ { "ab", 1 }, { "abc", "b" } }, (page({ id = "c", prefix = "ab" })))
    end)
  end)

  it("changes nothing", function()
    use_keys(3)
    jq:unchanged(function()
      page({ id = "c", count = 2 })
    end)
  end)
end)
