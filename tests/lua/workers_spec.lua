local msgpack = require "support.msgpack"
local space = require "support.space"
local specs = require "support.specs"

describe("workers", function()
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

  local function ids(spec)
    local reply = jq:call("workers", spec or {})
    local found = {}
    for i = 2, #reply do
      found[i - 1] = msgpack.unpack(reply[i]).id
    end
    return found, reply[1]
  end

  it("is empty in the beginning", function()
    assert.are.same({ "" }, jq:call("workers", {}))
  end)
  it("lists workers in order of registration", function()
    local made = {}
    for i = 1, 5 do
      made[i] = jq:register({})
    end
    assert.are.same(made, (ids()))
  end)
  it("gives pages that together hold each worker once", function()
    local made = {}
    for i = 1, 25 do
      made[i] = jq:register({})
    end
    local all, cursor = {}, ""
    repeat
      local page
      page, cursor = ids({ cursor = cursor, count = 10 })
      for _, id in ipairs(page) do
        all[#all + 1] = id
      end
    until cursor == ""
    assert.are.same(made, all)
  end)
  it("goes on behind a worker that went meanwhile", function()
    local made = { jq:register({}), jq:register({}), jq:register({}) }
    local _, cursor = ids({ count = 1 })
    jq:call("unregister", { worker = made[1] })
    assert.are.same({ made[2], made[3] }, (ids({ cursor = cursor })))
  end)

  describe("the state", function()
    it("is pulling without an url", function()
      assert.are.equal("pulling", jq:worker(jq:register({})).state)
    end)
    it("is ready with room", function()
      local worker = jq:register({ url = "http://w/", max_jobs = 2 })
      jq:enqueue("a")
      jq:assign()
      assert.are.same({ "ready", 1 }, { jq:worker(worker).state, jq:worker(worker).held })
    end)
    it("is full without room", function()
      local worker = jq:register({ url = "http://w/" })
      jq:enqueue("a")
      jq:assign()
      assert.are.same({ "full", 1 }, { jq:worker(worker).state, jq:worker(worker).held })
    end)
    for _, why in ipairs({ "busy", "unreachable" }) do
      it("is " .. why .. " when it said so", function()
        local worker = jq:register({ url = "http://w/" })
        jq:call("refuse", { worker = worker, jobs = {}, why = why })
        assert.are.equal(why, jq:worker(worker).state)
        jq:pass(1)
        jq:tick()
        assert.are.equal("ready", jq:worker(worker).state)
      end)
    end
  end)

  it("shows the names that a worker refused", function()
    local worker = jq:register({ url = "http://w/" })
    local id = jq:enqueue("a")
    jq:assign()
    jq:call("refuse", { worker = worker, jobs = { jq:held(id) }, why = "unknown" })
    assert.are.same({ "a" }, jq:worker(worker).refused)
  end)
  it("changes nothing", function()
    jq:register({ url = "http://w/" })
    jq:pass(100)
    jq:unchanged(ids)
  end)

  local function with(field)
    return function(value)
      return { { [field] = value } }
    end
  end
  specs.refused_values(it, current, "workers", with("count"), {
    { "a count of 0", 0, "INVALID count: expected an integer from 1 to 1000, got 0" },
    { "a count of 1001", 1001, "INVALID count: expected an integer from 1 to 1000, got 1001" },
  })
  specs.refused_values(it, current, "workers", with("cursor"), {
    { "a number as cursor", 5,
      "INVALID cursor: expected a cursor as the last reply gave it, or empty text, got 5" },
    { "a cursor of 256 bytes", ("c"):rep(256),
      "INVALID cursor: expected a cursor as the last reply gave it" },
  })
  specs.one_spec(it, current, "workers", {})
end)
