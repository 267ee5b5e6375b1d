local msgpack = require "support.msgpack"
local space = require "support.space"

describe("notes of a heartbeat", function()
  local jq = space.each()
  local function beat(entries, ...)
    return jq:call("heartbeat", { worker = "worker", jobs = entries }, ...)
  end
  local function two()
    jq:enqueue_all("a", "a")
    local jobs = jq:pick({ queues = "a", count = 2 })
    return jobs[1], jobs[2]
  end
  it("tell progress", function()
    local one, other = two()
    local half = { one.id, one.token, { progress = 0.5, message = "half" } }
    assert.are.same({ 30000, 30000 }, beat({ half, jq:held(other) }))
    assert.are.same({ 0.5, "half" }, { jq:get(one.id).progress, jq:get(one.id).progress_message })
    beat({ { one.id, one.token, { progress = 0.75 } } })
    assert.are.same({ 0.75, "half" }, { jq:get(one.id).progress, jq:get(one.id).progress_message })
    assert.is_nil(jq:get(other.id).progress)
  end)
end)

describe("history", function()
  local jq = space.each()
  local function history(id)
    return msgpack.unpack(jq:call("history", id))
  end
  local function events(id)
    local told = {}
    for i, event in ipairs(history(id).events) do
      told[i] = event.event .. " " .. (event.time_ms - space.START_MS)
    end
    return told
  end
  it("of an attempt that was cancelled, and of a cancel while the job waits to run again", function()
    local id = jq:enqueue("a")
    jq:take("a")
    jq:cancel(id)
    for _ = 1, 2 do
      jq:pass(1)
      jq:call("retry", { ids = { id } })
      jq:pass(1)
      jq:cancel(id)
    end
    local expected = { "enqueued 0", "started 0", "cancelled 0", "cancelled 2000", "cancelled 4000" }
    assert.are.same(expected, events(id))
    local told = history(id).events
    assert.are.same({ 1, nil, nil }, { told[3].attempt, told[4].attempt, told[5].attempt })
    jq:call("retry", { ids = { id } })
    jq:take("a")
    jq:cancel(id)
    expected[6], expected[7] = "started 4000", "cancelled 4000"
    assert.are.same(expected, events(id))
    assert.are.equal(2, history(id).events[7].attempt)
  end)
  it("is bounded, and counts what it forgot", function()
    local id = jq:enqueue("a")
    for _ = 1, 23 do
      jq:release(jq:take("a"))
    end
    local told = history(id)
    assert.are.equal(3, told.forgotten)
    assert.are.equal(41, #told.events)
    assert.are.equal(4, told.events[2].attempt)
    jq:cancel(id)
    told = history(id)
    assert.are.same({ 4, 40 }, { told.forgotten, #told.events })
  end)
  it("tells no start whose end is forgotten", function()
    local id = jq:enqueue("a")
    jq:take("a")
    jq:call("cancel", { ids = { id }, force = true })
    for _ = 1, 25 do
      jq:call("retry", { ids = { id } })
      jq:cancel(id)
    end
    local told = history(id)
    assert.are.same({ 6, 21 }, { told.forgotten, #told.events })
    assert.are.equal("cancelled", told.events[2].event)
  end)
end)
