-- A partition of a cluster, as its name says. All other specs run so with JQ_NUMBER=7.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a partition of a cluster", function()
  local jq
  local function named(name)
    jq = space.new({ tag = name })
    return jq
  end
  after_each(function()
    jq:close()
  end)

  it("has two digits of its own at the end of each id", function()
    named("two:10~4be09d/16")
    local first, second = jq:enqueue("a"), jq:enqueue("a", { unique = "u" })
    assert.are.equal("0a", first:sub(15))
    assert.are.equal("0a", second:sub(15))
    assert.is_true(first < second)
    assert.is_truthy(jq:register({ queues = "a" }):match("^w%x%x%x%x%x%x%x%x%x%x%x%x%x%x0a$"))
    assert.are.equal(space.START_MS, jq:get(first).created_ms)
    assert.are.same({ first, second }, jq:pick_ids({ queues = "a", count = 2 }))
    assert.are.equal(11, jq:call("setup"))
    assert.are.equal("0a", jq:enqueue("a"):sub(15))
  end)
  for tag, tail in pairs({
    ["t:1~0/2"] = "01", ["t:255~ff/256"] = "ff", ["a:b:16~a:2~b/3"] = "02", ["t:256~ff/256"] = "", ["t:0~ff/2"] = "",
    ["t:7~/16"] = "", ["t:7~x/16"] = "", ["7~ff/16"] = "", ["t:7~ff"] = "", ["t:-7~ff/16"] = "", ["t:1~0/257"] = "",
    ["t:3~0/3"] = "",
  }) do
    it("is by its name " .. tag .. " " .. (tail == "" and "none, or the first" or tail), function()
      assert.are.equal(tail, named(tag):enqueue("a"):sub(15))
    end)
  end
  for number, others in pairs({ [0] = { "01" }, [2] = { "", "01", "03" } }) do
    it(number .. " has no job that waits for one of another", function()
      named("mine:" .. number .. "~0/4")
      local foreign = "in another partition; give both the same route"
      local function refuses()
        for _, tail in ipairs(others) do
          local there = ("0"):rep(13) .. "1" .. tail
          jq:refuses("INVALID jobs[0].depends[0]: " .. foreign, "enqueue", { name = "b", depends = { there } },
            msgpack.NIL)
        end
      end
      refuses() -- also before it has given an id
      local here = jq:enqueue("a")
      refuses()
      jq:enqueue("b", { depends = { here } })
    end)
  end
  it("knows no id that ends in two noughts, which no namespace gives", function()
    named("none:2~0/3")
    jq:refuses("INVALID ids[0]: expected a job id of 14 or 16 hexadecimal digits", "cancel",
      { ids = { ("0"):rep(16) } })
  end)
  it("is none by the name of all of them", function()
    jq = space.new({ tag = "all:*/4", setup = false })
    jq:refuses("INVALID namespace: {all:*/4} names all partitions of a cluster", "setup")
  end)
  it("has its part of what is shared, and tells all of it", function()
    for i, starts in ipairs({ 3, 3, 2 }) do
      named("shared:" .. i - 1 .. "~" .. i - 1 .. "/3")
      local shown = jq:constrain({ id = "c", concurrency = 8, rate = { limit = 9, period = 60 }, shared = true },
        { name = "a" })
      assert.are.same({ 8, 9, true }, { shown.concurrency, shown.rate.limit, shown.shared })
      jq:enqueue_many({ name = "a" }, 5)
      assert.are.equal(starts, #jq:pick_ids({ queues = "a", count = 5 }))
      shown = jq:constrain({ id = "c", concurrency = 8 }, { name = "a" })
      assert.are.same({ 8, nil }, { shown.concurrency, shown.shared })
      assert.are.equal(5 - starts, #jq:pick_ids({ queues = "a", count = 5 }))
      if i < 3 then
        jq:close()
      end
    end
  end)
  it("shares nothing of which there is not one for each", function()
    named("few:0~0/3")
    local all = " expected at least 3, one for each partition; or have match name queues whose route is in by, so that "
      .. "each partition has its keys alone"
    local match = msgpack.pack({ name = "a" })
    jq:refuses("INVALID concurrency:" .. all, "constrain", { id = "c", concurrency = 2, shared = true }, match)
    jq:refuses("INVALID rate.limit:" .. all, "constrain",
      { id = "c", rate = { limit = 2, period = 1 }, shared = true }, match)
    jq:refuses("INVALID shared: expected true or false, got 1", "constrain",
      { id = "c", concurrency = 3, shared = 1 }, match)
  end)
  it("takes the id of a worker that another gave", function()
    named("workers:1~0/2")
    local id = "w0123456789abcd"
    local function register(more)
      return jq:call("register", space.with({ name = "w", queues = "a", url = "http://h/1" }, more))
    end
    assert.are.equal(id, register({ id = id }))
    assert.are.equal(id, register({ id = id }))
    local expected = "INVALID id: expected the id of a worker that is registered in another partition, got "
    jq:refuses(expected .. '"w"', "register", { name = "w", queues = "a", id = "w" })
    jq:refuses("INVALID id: a worker that announces itself has none", "register",
      { name = "w", queues = "a", id = id, announce = true })
    jq:enqueue("a")
    assert.are.equal(id, jq:call("assign", { master = "m" })[2])
  end)
end)
