local msgpack = require "support.msgpack"
local space = require "support.space"

describe("failures", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  local function failures(spec)
    local reply = jq:call("failures", spec or {})
    local documents = {}
    for i = 2, #reply do
      documents[i - 1] = msgpack.unpack(reply[i])
    end
    return documents, reply[1]
  end

  --- How many failed by group.
  local function counts()
    local found = {}
    for _, document in ipairs((failures())) do
      found[document.group] = document.count
    end
    return found
  end

  local function fail(group, message, more)
    local spec = space.with({ name = "a", max_retry = 0 }, more)
    local id = jq:enqueue(spec)
    jq:fail(jq:take("a"), { group = group, message = message })
    return id
  end

  it("end with retry and with discard", function()
    local ids = { fail("g"), fail("g"), fail("h") }
    jq:call("retry", { ids = { ids[1] } })
    assert.are.same({ g = 1, h = 1 }, counts())
    jq:call("discard", { ids = { ids[2] } })
    assert.are.same({ h = 1 }, counts())
  end)
  describe("of a time", function()
    it("say what the newest are: names, queues, and values that several have", function()
      local function fail_one(name, argument)
        jq:enqueue({ name = name, queue = "q", max_retry = 0 }, argument)
        jq:fail(jq:take("q"), { group = "g" })
      end
      jq:enqueue({ name = "old", max_retry = 0 }, { to = "never" })
      jq:fail(jq:take("old"), { group = "g" })
      jq:pass(1)
      fail_one("a", { to = "acme", n = 1, ["x.y"] = true, deep = { 1 }, long = ("x"):rep(65) })
      fail_one("a", { to = "acme", n = 2, ["x.y"] = true, deep = { 1 }, long = ("x"):rep(65) })
      fail_one("a", { to = "acme", n = 3 })
      fail_one("b", { "acme", 7 })
      fail_one("b", { "acme", 8 })
      jq:enqueue({ name = "c", queue = "q", max_retry = 0 }, "\193")
      jq:fail(jq:take("q"), { group = "g" })
      local document = failures({ group = "g", sample = 6 })[1]
      assert.are.same({ { "a", 3 }, { "b", 2 }, { "c", 1 } }, document.names)
      assert.are.same({ { "q", 6 } }, document.queues)
      assert.are.same({
        { "argument.to", "acme", 3 }, { "argument.0", "acme", 2 }, { "argument.x\\.y", true, 2 },
        { "argument.deep.0", 1, 2 },
      }, document.values)
      assert.are.same({ 7, 6 }, { document.count, document.looked })
    end)
    it("read no more of an argument than its beginning", function()
      for _ = 1, 2 do
        jq:enqueue({ name = "a", max_retry = 0 }, { "x", ("y"):rep(5000), "z" })
        jq:fail(jq:take("a"), { group = "g" })
      end
      assert.are.same({ { "argument.0", "x", 2 } }, failures({ group = "g", sample = 6 })[1].values)
    end)
    it("come in shorter pages where each costs more", function()
      jq:set({ error_max = 100000 })
      local jobs = {}
      for _ = 1, 300 do
        jq:enqueue({ name = "a", max_retry = 0 }, { to = ("x"):rep(60) })
      end
      for i = 1, 300 do
        jobs[i] = jq:take("a")
        jq:pass(0.001)
        jq:fail(jobs[i], { group = "g" .. i % 100 })
      end
      local spec = { steps = 100, from_ms = space.START_MS, to_ms = space.START_MS + 300, sample = 100, count = 1000 }
      local found, pages, sum = {}, 0, 0
      repeat
        local documents, cursor = failures(spec)
        for _, document in ipairs(documents) do
          found[#found + 1] = document.group
          for _, number in ipairs(document.counts) do
            sum = sum + number
          end
        end
        spec.cursor, pages = cursor, pages + 1
      until cursor == ""
      assert.are.same({ 100, 300 - 1 }, { #found, sum })
      assert.is_true(pages > 2 and pages < 20)
    end)
  end)
end)
