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

  it("are none at first", function()
    assert.are.same({ "" }, jq:call("failures", {}))
  end)
  it("say of each group how many, from when to when, and the last", function()
    fail("g", "first")
    jq:pass(1)
    fail("h", "other")
    jq:pass(1)
    local id = fail("g", "last")
    assert.are.same({
      { group = "g", count = 2, first_ms = space.START_MS, last_ms = space.START_MS + 2000, id = id, message = "last" },
      { group = "h", count = 1, first_ms = space.START_MS + 1000, last_ms = space.START_MS + 1000,
        id = jq:get(id) and failures()[2].id, message = "other" },
    }, (failures()))
  end)
  it("are of jobs that failed for good only", function()
    fail("g", nil, { max_retry = 1 })
    assert.are.same({}, counts())
    jq:pass(2)
    jq:fail(jq:take("a"), { group = "h" })
    assert.are.same({ h = 1 }, counts())
  end)
  it("have the reason as group where none was given", function()
    fail()
    jq:enqueue({ name = "a", max_retry = 0, timeout = 1 })
    jq:take("a")
    jq:enqueue({ name = "b", expires_in = 1 })
    jq:pass(1)
    jq:settle()
    local other = fail("g")
    jq:enqueue({ name = "b", depends = { other }, if_failed = "fail" })
    jq:settle()
    assert.are.same({ other = 1, timeout = 1, expired = 1, g = 1, dependency = 1 }, counts())
  end)
  it("come in pages in order of group", function()
    for _, group in ipairs({ "c", "a", "d", "b" }) do
      fail(group)
    end
    local groups, cursor = {}, nil
    repeat
      local documents
      documents, cursor = failures({ cursor = cursor, count = 3 })
      for _, document in ipairs(documents) do
        groups[#groups + 1] = document.group
      end
    until cursor == ""
    assert.are.same({ "a", "b", "c", "d" }, groups)
  end)
  it("end when the record goes by age", function()
    fail("g")
    jq:set({ error_ttl = 10 })
    jq:pass(20)
    jq:settle()
    assert.are.same({}, counts())
  end)
  it("end when the record goes by number", function()
    fail("g")
    fail("h")
    fail("g")
    jq:set({ error_max = 1 })
    jq:pass(6)
    jq:settle()
    assert.are.same({ g = 1 }, counts())
  end)
  it("are none where failed jobs leave no record", function()
    jq:set({ error_max = 0 })
    fail("g", nil, { tags = { "t" } })
    assert.are.same({}, counts())
  end)
  it("end with retry and with discard", function()
    local ids = { fail("g"), fail("g"), fail("h") }
    jq:call("retry", { ids = { ids[1] } })
    assert.are.same({ g = 1, h = 1 }, counts())
    jq:call("discard", { ids = { ids[2] } })
    assert.are.same({ h = 1 }, counts())
  end)
  it("change nothing when they are looked at", function()
    fail("g")
    jq:unchanged(function()
      failures()
    end)
  end)
end)

describe("an outcome's group", function()
  local jq
  before_each(function()
    jq = space.new()
    jq:enqueue({ name = "a", max_retry = 0 })
  end)
  after_each(function()
    jq:close()
  end)

  local function refused(expected, outcome)
    local job = jq:take("a")
    outcome.id, outcome.attempt = job.id, 1
    jq:refuses(expected, "finish", { worker = "w" }, outcome, msgpack.NIL)
  end

  it("is a text", function()
    refused("INVALID outcomes[0].group: ", { type = "failure", group = "" })
  end)
  it("is a failure's only", function()
    refused("INVALID outcomes[0].group: only an outcome of type failure has it", { type = "success", group = "g" })
  end)
end)
