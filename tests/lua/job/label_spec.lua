local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a job's label", function()
  local jq = space.each()

  local function enqueue(label)
    return jq:call("enqueue", { name = "a", label = label }, msgpack.NIL)[1]
  end

  it("shows in its document, and goes to the worker at every attempt", function()
    local longest = string.rep("é", 64)
    assert.are.equal(longest, jq:get(enqueue(longest)).label)
    local started = jq:take("a")
    assert.are.equal(longest, started.label)
    jq:fail(started, {})
    jq:pass(10)
    assert.are.equal(longest, jq:take("a").label)
  end)
  it("is not there when it is not given", function()
    assert.is_nil(jq:get(enqueue()).label)
    assert.is_nil(jq:take("a").label)
  end)
  it("of more than 64 characters is an error", function()
    jq:refuses("INVALID jobs[0].label", "enqueue", { name = "a", label = string.rep("x", 65) }, msgpack.NIL)
  end)
end)
