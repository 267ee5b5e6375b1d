-- What held a job before its first start, as its history tells.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("the constraint that held a job", function()
  local jq = space.each()

  local function constrain(more)
    return jq:constrain(space.with({ id = "c" }, more), { name = "a" })
  end

  --- Who held it, and for how many ms after the test began.
  local function held(id, number)
    local found = 0
    for _, event in ipairs(msgpack.unpack(jq:call("history", id)).events) do
      if event.event == "started" then
        found = found + 1
        if found == (number or 1) then
          return event.held_by, event.held_until_ms and event.held_until_ms - space.START_MS
        end
      end
    end
  end

  local function holder(id)
    return { held(id) }
  end

  it("is told with the start, also behind the end, by jobs that no look had parked", function()
    constrain({ concurrency = 2 })
    local ids = jq:enqueue_many({ name = "a" }, 6)
    local first = jq:start({ queues = "a", count = 2 })
    jq:pass(5)
    jq:succeed(first[1])
    local third = jq:start_one("a")
    assert.are.same({ "c", 5000 }, holder(ids[3]))
    jq:pass(2)
    jq:succeed(third)
    assert.are.same({ "c", 5000 }, holder(ids[3]))
    jq:pass(3)
    -- It waited for a worker as well, after there was room.
    jq:start_one("a")
    assert.are.same({ "c", 7000 }, holder(ids[4]))
    jq:fail(first[2])
    jq:start_one("a")
    assert.are.same({ "c", 10000 }, holder(ids[5]))
    assert.are.same({}, holder(ids[1]))
    assert.are.same({}, holder(ids[2]))
  end)
  it("is the last of several, and none that had room", function()
    constrain({ id = "wide", concurrency = 9 })
    constrain({ id = "first", concurrency = 1 })
    constrain({ id = "last", concurrency = 3 })
    local id = jq:enqueue_many({ name = "a" }, 2)[2]
    local running = jq:start_one("a")
    jq:pass(4)
    jq:hold("last", 3)
    jq:succeed(running)
    assert.are.same({}, jq:start_ids("a"))
    jq:pass(5)
    assert.are.same({ id }, jq:start_ids("a"))
    assert.are.same({ "last", 7000 }, holder(id))
  end)
  it("has a rate, or was held by hand", function()
    constrain({ rate = { limit = 1, period = 10 } })
    jq:constrain({ id = "smooth", rate = { limit = 1, period = 10, smooth = true } }, { name = "b" })
    jq:constrain({ id = "hand", concurrency = 9 }, { name = "d" })
    for _, name in ipairs({ "a", "b" }) do
      local ids = jq:enqueue_many({ name = name }, 2)
      jq:start_one(name)
      jq:pass(2)
      assert.are.same({}, jq:start_ids(name))
      jq:pass(10)
      assert.are.same({ ids[2] }, jq:start_ids(name))
      assert.are.same({ name == "a" and "c" or "smooth", name == "a" and 10000 or 22000 }, holder(ids[2]))
    end
    local id = jq:enqueue("d")
    jq:hold("hand", 100)
    assert.are.same({}, jq:start_ids("d"))
    jq:pass(6)
    jq:hold("hand", 0)
    jq:pass(1)
    assert.are.same({ id }, jq:start_ids("d"))
    assert.are.same({ "hand", 30000 }, holder(id))
  end)
  it("is not known of a key that nothing used, and no worker had asked for, when there was room", function()
    constrain({ concurrency = 1 })
    local id = jq:enqueue_many({ name = "a" }, 2)[2]
    local running = jq:start_one("a")
    jq:pass(3)
    jq:succeed(running)
    assert.are.same({ id }, jq:start_ids("a"))
    assert.are.same({}, holder(id))
  end)
  it("did not hold what was not ready", function()
    constrain({ concurrency = 1 })
    local running = jq:enqueue("a") and jq:start_one("a")
    local id = jq:enqueue({ name = "a", delay = 8 })
    jq:pass(7)
    jq:succeed(running)
    jq:pass(5)
    assert.are.same({ id }, jq:start_ids("a"))
    assert.are.same({}, holder(id))
  end)
  it("is told of the first attempt alone, as long as that is", function()
    constrain({ concurrency = 1 })
    local id = jq:enqueue_many({ name = "a", max_retry = 1, retry_base = 0 }, 2)[2]
    local running = jq:start_one("a")
    assert.are.same({}, jq:start_ids("a"))
    jq:pass(3)
    jq:succeed(running)
    jq:fail(jq:start_one("a"))
    jq:pass(3)
    assert.are.same({ id }, jq:start_ids("a"))
    assert.are.same({ "c", 3000 }, holder(id))
    assert.are.same({}, { held(id, 2) })
  end)
end)
