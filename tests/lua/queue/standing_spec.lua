local msgpack = require "support.msgpack"
local space = require "support.space"

local MINUTE_MS = 60000
local START_MS = space.START_MS - space.START_MS % MINUTE_MS + MINUTE_MS

describe("queues with minutes", function()
  local jq = space.each()
  before_each(function()
    jq:set_clock(START_MS)
  end)

  local function shown(name, more)
    return msgpack.unpack(jq:call("queues", space.with({ names = { name }, minutes = 15 }, more))[2])
  end
  local function life(queue, wait_s, run_s)
    jq:enqueue(queue)
    jq:pass(wait_s)
    local job = jq:take(queue)
    jq:pass(run_s)
    jq:succeed(job)
  end

  it("tells what happened in so many minutes", function()
    life("a", 1, 2)
    jq:set_clock(START_MS + 15 * MINUTE_MS)
    life("a", 3, 4)
    jq:enqueue({ name = "b", queue = "a" })
    local recent = shown("a").recent
    assert.are.same({ 2, 1, 14 * MINUTE_MS + 7000 }, { recent.enqueued, recent.done, recent.span_ms })
    assert.are.same({ 1, 3000, 1, 4000 }, { recent.wait.count, recent.wait.p95, recent.run.count, recent.run.p95 })
    assert.are.equal(2, shown("a", { minutes = 16 }).recent.done)
  end)
  it("tells what happened since midnight", function()
    life("a", 1, 2)
    jq:set_clock(START_MS + 24 * 60 * MINUTE_MS)
    life("a", 3, 4)
    local today = shown("a", { today = true }).today
    assert.are.same({ 1, 1, 3000, 4000 }, { today.enqueued, today.done, today.wait.p95, today.run.p95 })
    assert.are.same({ 2, nil }, { #today.run.histogram + 1, shown("a").today })
  end)
  it("tells when the queue will be empty, or not that", function()
    jq:enqueue_many({ name = "a" }, 6)
    assert.is_nil(shown("a").empties_ms) -- it grows
    jq:set_clock(START_MS + 15 * MINUTE_MS)
    jq:succeed(jq:take("a"))
    jq:succeed(jq:take("a"))
    jq:pass(1)
    assert.are.equal(4 * (14 * MINUTE_MS + 1000) / 2, shown("a").empties_ms)
  end)
  it("says that nobody serves it, once the oldest has waited for ten seconds", function()
    jq:enqueue("a")
    jq:pass(9)
    assert.is_nil(shown("a").cause)
    jq:pass(1)
    assert.are.equal("no worker", shown("a").cause)
    jq:call("register", { name = "w", queues = { "*", "a" } })
    local document = shown("a")
    assert.are.same({ 1, 0, "slow" }, { document.workers, document.channels, document.cause })
  end)
  it("names the constraints that hold the oldest", function()
    jq:call("constrain", { id = "c", concurrency = 1, by = "argument.x" }, msgpack.pack({ queue = "a" }))
    jq:call("constrain", { id = "d", concurrency = 1 }, msgpack.pack({ name = "z" }))
    for _ = 1, 3 do
      jq:enqueue("a", { x = 1 })
    end
    jq:enqueue("a", { x = 2 })
    assert.is_nil(shown("a").cause)
    local job = jq:take("a")
    local document = shown("a")
    assert.are.same({ "constraint", { "c" } }, { document.cause, document.held_by })
    jq:succeed(job)
    assert.is_nil(shown("a").cause)
  end)
end)
