local msgpack = require "support.msgpack"
local space = require "support.space"
local system = require "support.system"

local K = 1019 -- the bucket of the key k

describe("a schedule whose jobs belong to another partition", function()
  local jqs = system.each(3)

  local function tell_all(generation, home, more)
    local partitions, buckets = {}, {}
    for i = 0, 2 do
      partitions[i + 1] = { jqs[i].name, "active" }
    end
    for i = 1, 1024 do
      buckets[i] = i == K + 1 and home or 0
    end
    local record = { format = 1, generation = generation, partitions = partitions, buckets = buckets }
    for i = 0, 2 do
      jqs[i]:call("system", {}, msgpack.pack(space.with(record, more)))
    end
  end
  local function put(more, job)
    local spec = space.with({ id = "s", every = 10, job = space.with({ name = "b", unique = "k" }, job) }, more)
    return msgpack.unpack(jqs[0]:call("schedule", spec, "\7"))
  end
  local function shown(from)
    return msgpack.unpack(jqs[from or 0]:call("schedules", { ids = { "s" }, runs = 5 })[2])
  end
  local function pass(seconds)
    jqs:pass(seconds)
    jqs[0]:call("tick", {})
  end
  local function waiting(partition)
    return jqs[partition]:pick_ids({ queues = "b", count = 100 })
  end
  local function nothing_left()
    for i = 0, 2 do
      assert.are.same({}, jqs[i]:redis("ZRANGE", jqs[i].name .. ":outboxes", 0, -1))
      assert.are.equal(0, jqs[i]:redis("EXISTS", jqs[i].name .. ":onward-jobs"))
    end
    assert.is_nil(shown().on_its_way_ms)
  end
  before_each(function()
    tell_all(2, 1)
  end)

  it("has them made there", function()
    local at_ms = put().next_ms
    pass(10)
    local before = shown()
    assert.are.same({ 0, at_ms, at_ms + 10000, {} }, { before.made, before.on_its_way_ms, before.next_ms, before.runs })
    jqs:settle()
    local id = waiting(1)[1]
    local job = jqs[1]:get(id)
    assert.are.same({ "s", at_ms, "k", 7 }, { job.schedule, job.schedule_ms, job.unique, job.argument })
    local after = shown()
    assert.are.same({ 1, at_ms, id }, { after.made, after.last_ms, after.last_id })
    assert.are.same({ { id = id } }, after.runs) -- it is elsewhere that more is known of it
    nothing_left()
  end)
  it("has one on its way at a time, and catches up when that one is there", function()
    local at_ms = put({ catch_up = "all" }).next_ms
    pass(10)
    pass(10)
    pass(10)
    assert.are.equal(-1, jqs[0]:call("tick", {})[1]) -- nobody looks at it all the time
    assert.are.same({ 0, at_ms, at_ms + 10000 }, { shown().made, shown().on_its_way_ms, shown().next_ms })
    for made = 1, 3 do
      jqs:carry(0, jqs:letters(0))
      assert.are.same({ made, nil }, { shown().made, shown().on_its_way_ms })
      jqs[1]:succeed(jqs[1]:take("b"))
      pass(0)
    end
    nothing_left()
  end)
  it("makes one for all moments that passed while that partition was away", function()
    put()
    pass(10)
    local found = jqs:letters(0)
    pass(60)
    assert.are.equal(0, #waiting(1))
    jqs:carry(0, found)
    jqs[1]:succeed(jqs[1]:take("b"))
    pass(1)
    jqs:settle()
    assert.are.same({ 2, shown().next_ms - 10000 }, { shown().made, shown().last_ms })
  end)
  it("makes no more than its limit, of which those count that were made", function()
    put({ limit = 2 })
    pass(10)
    jqs:settle()
    pass(10)
    jqs:settle() -- the first still has the key
    assert.are.equal(1, shown().made)
    jqs[1]:succeed(jqs[1]:take("b"))
    pass(10)
    assert.are.equal(10000, shown().next_ms - shown().on_its_way_ms)
    jqs:settle()
    assert.are.same({ 2, nil }, { shown().made, shown().next_ms })
    nothing_left()
  end)
  it("makes none where its queue has no room", function()
    jqs[1]:call("queue", { name = "b", max_waiting = 1 })
    jqs[1]:enqueue("b")
    put()
    pass(10)
    local found = jqs:letters(0)
    assert.are.equal("full", jqs[1]:call("deliver", found[1][2])[1])
    jqs[1]:take("b")
    assert.are.equal("full", jqs[1]:call("deliver", found[1][2])[1])
    jqs:carry(0, found)
    assert.are.equal(0, shown().made)
    nothing_left()
  end)
  it("makes one at once, beside those", function()
    put()
    assert.are.same({ "", 0 }, jqs[0]:call("schedule", { id = "s", run = true }))
    jqs:settle()
    local id = waiting(1)[1]
    assert.are.same({ { { id = id } }, 0 }, { shown().runs, shown().made })
    assert.are.equal("s", jqs[1]:get(id).schedule)
    nothing_left()
  end)
  it("may be replaced or deleted meanwhile", function()
    local at_ms = put().next_ms
    pass(10)
    assert.are.equal(at_ms, put({ paused = true }).on_its_way_ms)
    jqs:settle()
    assert.are.same({ 1, at_ms }, { shown().made, shown().last_ms })
    jqs[1]:succeed(jqs[1]:take("b"))
    put()
    pass(10)
    jqs[0]:call("unschedule", { id = "s" })
    put()
    jqs:settle()
    assert.are.equal(1, #waiting(1))
    assert.are.equal(0, shown().made)
  end)
  it("goes on where the bucket comes here meanwhile", function()
    put()
    pass(10)
    tell_all(3, 0, { former = { [K] = 1 } })
    jqs:settle()
    jqs:pass(5)
    jqs:settle()
    local id = waiting(0)[1]
    assert.are.same({ 1, id, "running" }, { shown().made, shown().last_id, shown().runs[1].status })
    assert.are.equal("s", jqs[0]:get(id).schedule)
    nothing_left()
  end)
  it("makes none while nobody can tell where they belong", function()
    put()
    local record = jqs[0]:redis("GET", jqs[0].name .. ":system")
    jqs[0]:redis("SET", jqs[0].name .. ":system", msgpack.pack({ format = 2 }))
    pass(10)
    jqs[0]:refuses("VERSION " .. jqs[0].name .. ":system: this record of a system has another format than 1",
      "schedule", { id = "s", run = true })
    jqs[0]:redis("SET", jqs[0].name .. ":system", record)
    assert.are.equal(0, shown().made)
    pass(60)
    jqs:settle()
    assert.are.equal(1, #waiting(1))
  end)
end)
