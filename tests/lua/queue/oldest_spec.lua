local msgpack = require "support.msgpack"
local space = require "support.space"
require "support.work"

describe("oldest_ready_ms", function()
  local jq = space.each()

  --- For how many seconds the oldest ready job of the queue has waited; nil when there is none.
  local function age(name)
    local doc = msgpack.unpack(jq:call("queues", { names = { name or "a" } })[2])
    return doc.oldest_ready_ms and (jq.now_ms - doc.oldest_ready_ms) / 1000
  end

  it("looks past jobs that came early and were ready late", function()
    for _ = 1, 60 do
      jq:enqueue({ name = "a", delay = 100 })
    end
    jq:pass(50)
    jq:enqueue("a")
    jq:pass(50)
    jq:settle()
    assert.are.equal(50, age())
  end)
  it("is not after now, also when the clock goes back", function()
    jq:enqueue("a")
    jq:set_clock(jq.now_ms - 5000)
    assert.are.equal(0, age())
  end)
  it("looks at so many jobs and no more", function()
    jq:enqueue_many({ name = "a", delay = 100 }, 1000)
    jq:pass(90)
    jq:enqueue("a")
    jq:pass(10)
    for _ = 1, 20 do
      jq:tick()
    end
    assert.are.equal(0, age()) -- the thousand before it came from waiting just now
    assert.is_true(jq:commands(age) < 40)
  end)
end)
