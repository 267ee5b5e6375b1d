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
    return documents
  end

  --- How many failed by group.
  local function counts()
    local found = {}
    for _, document in ipairs(failures()) do
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
  it("say what the newest is", function()
    fail("g", "once")
    jq:pass(1)
    local id = fail("g", "again", { name = "b", queue = "a" })
    local document = failures({ group = "g" })[1]
    assert.are.same({ 2, id, "b", "a", "again" },
      { document.count, document.id, document.name, document.queue, document.message })
  end)
end)
