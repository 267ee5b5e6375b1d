-- Jobs that are only for when another failed: `if_failed: "only"`, and the state `skipped`.
local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"

describe("a job that is only for when another fails", function()
  local jq = space.each()

  local function after(depends, more)
    return jq:enqueue(space.with({ name = "clean", queue = "c", depends = depends, if_failed = "only" }, more))
  end
  local function end_of(id)
    jq:call("tick", {})
    local document = jq:get(id)
    return document.status, document
  end
  local function queue(name)
    return msgpack.unpack(jq:call("queues", { names = { name } })[2])
  end

  it("is skipped, unstarted, when all that it depends on is done", function()
    local one, two = jq:enqueue("a"), jq:enqueue("a")
    local id = after({ one, two })
    jq:succeed(jq:take("a"))
    assert.are.equal("blocked", (end_of(id)))
    jq:pass(5)
    jq:succeed(jq:take("a"))
    local status, document = end_of(id)
    assert.are.equal("skipped", status)
    assert.are.same({ space.START_MS + 5000, 0, "only" }, { document.ended_ms, document.attempt, document.if_failed })
    assert.is_nil(document.started_ms)
    assert.are.same({ 1, 0, 0 }, { queue("c").skipped, queue("c").cancelled, queue("c").done })
    assert.are.same({ "skipped" }, jq:call("result", id))
    assert.are.same({}, jq:pick_ids("c"))
  end)
  it("can be retried by hand, and is not by those who retry what failed", function()
    local one = jq:enqueue("a")
    local id = after({ one }, { unique = "k" })
    jq:succeed(jq:take("a"))
    assert.are.equal("skipped", (end_of(id)))
    assert.are.equal(0, jq:call("retry", { where = { queue = "c" } })[2])
    assert.are.equal(1, jq:call("retry", { where = { status = "skipped" } })[2])
    assert.are.same({ id }, jq:pick_ids("c"))
    local events = {}
    for i, event in ipairs(msgpack.unpack(jq:call("history", id)).events) do
      events[i] = event.event
    end
    assert.are.same({ "enqueued", "skipped", "started" }, events)
  end)
  it("is told of as skipped", function()
    local listener = server.connect()
    listener:call("SSUBSCRIBE", jq.name .. ":ended")
    jq:call("subscribe", { id = "h", url = "http://h/", on = { "skipped" } }, msgpack.pack({ name = "clean" }))
    local one = jq:enqueue("a")
    local id = after({ one })
    jq:call("watch", id)
    jq:succeed(jq:take("a"))
    jq:call("tick", {})
    assert.are.equal(one .. " done", listener:read()[3])
    assert.are.equal(id .. " skipped", listener:read()[3])
    listener:close()
    jq:call("tick", {})
    local told = jq:pick({ worker = "m", queues = "jq.webhooks" })[1]
    assert.is_not_nil(told)
    local events = msgpack.unpack(jq:call("history", id)).events
    assert.are.equal("skipped", events[#events].event)
    local stats = msgpack.unpack(jq:call("stats", { by = "hour", queue = "c" })[1])
    assert.are.same({ 1, 1, 0, 0 }, { stats.enqueued, stats.skipped, stats.cancelled, stats.done })
  end)
end)
