local msgpack = require "support.msgpack"
local space = require "support.space"
require "support.work"

describe("oldest", function()
  local jq = space.each()

  --- The document, or nil; and the cursor.
  local function oldest(spec)
    local reply = jq:call("oldest", spec or {})
    return reply[2] and msgpack.unpack(reply[2]), reply[1]
  end

  it("is the job that has been ready for longest, of all queues", function()
    assert.is_nil(oldest())
    local first = jq:enqueue("b")
    jq:pass(5)
    local second = jq:enqueue("a")
    jq:pass(1)
    assert.are.same({ id = first, queue = "b", age_ms = 6000 }, (oldest()))
    assert.are.same({ id = second, queue = "a", age_ms = 1000 }, (oldest({ queue = "a" })))
    jq:take("b")
    assert.are.same({ id = second, queue = "a", age_ms = 1000 }, (oldest()))
    assert.is_nil(oldest({ queue = "b" }))
  end)
  it("looks at a page of queues at a time", function()
    local first = jq:enqueue("b")
    jq:pass(2)
    jq:enqueue("a")
    local shown, cursor = oldest({ count = 1 })
    assert.are.same({ "a", 0 }, { shown.queue, shown.age_ms })
    shown = oldest({ cursor = cursor, count = 1 })
    assert.are.equal(first, shown.id)
  end)
  it("of a queue that is not there is an error, and so is what is no spec", function()
    jq:refuses("NOTFOUND queue", "oldest", { queue = "a" })
    jq:refuses("INVALID queue", "oldest", { queue = "a*" })
    jq:refuses("INVALID queue", "oldest", { queue = "a", count = 1 })
  end)
end)
