local msgpack = require "support.msgpack"
local space = require "support.space"

describe("max_lapses", function()
  local jq = space.each()

  local function counts(id)
    local document = jq:get(id)
    return { document.status, document.retry_count, document.lapses or 0 }
  end

  --- Starts the job, and lets its lease run out; with its backoff over.
  local function lapse()
    jq:take("a")
    jq:pass(30)
    jq:tick()
    jq:pass(3600)
  end

  it("ends the job after one more, with a reason of its own", function()
    local id = jq:enqueue({ name = "a", max_lapses = 1 })
    lapse()
    lapse()
    assert.are.same({ "error", 0, 2 }, counts(id))
    local document = jq:get(id)
    assert.are.same({ "lapses", "lapses", "the lease ran out, more than max_lapses times" },
      { document.reason, document.group, document.message })
    local failure = msgpack.unpack(jq:call("failures", {})[2])
    assert.are.same({ "lapses", 1 }, { failure.group, failure.count })
    local ends = msgpack.unpack(jq:call("history", id)).events
    assert.are.same({ "lapsed", "lapses" }, { ends[#ends].event, ends[#ends].reason })
  end)
  it("does not count attempts that ran for max_runtime", function()
    local id = jq:enqueue({ name = "a", max_runtime = 20, max_lapses = 1 })
    jq:take("a")
    jq:pass(20)
    jq:tick()
    assert.are.same({ "retrying", 1, 0 }, counts(id))
  end)
end)
