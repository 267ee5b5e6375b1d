-- Buckets that went to another partition: what stays behind makes nothing new.
local msgpack = require "support.msgpack"
local space = require "support.space"
local system = require "support.system"

local NIL = msgpack.NIL

describe("a bucket that left", function()
  local jqs = system.each(2)

  -- As jqmaster system --key tells them.
  local BUCKETS = { k = 1019, other = 148, s = 241 }

  --- A record by which partition 0 has all buckets but one.
  local function record(generation, bucket, more)
    local partitions, buckets = {}, {}
    for i = 0, 1 do
      partitions[i + 1] = { jqs[i].name, "active" }
    end
    for i = 1, 1024 do
      buckets[i] = i - 1 == bucket and 1 or 0
    end
    return msgpack.pack(space.with({ format = 1, generation = generation, partitions = partitions, buckets = buckets,
      former = bucket and { [bucket] = 0 } or nil }, more))
  end
  local function leave(generation, bucket, more)
    jqs[0]:call("system", {}, record(generation, bucket, more))
  end

  local function fail(spec, argument)
    local id = jqs[0]:call("enqueue", spec, argument or NIL)[1]
    local job = jqs[0]:take(spec.queue or spec.name)
    assert.are.equal(id, job.id)
    jqs[0]:fail(job, { should_retry = false })
    return id
  end

  it("is noted, until it comes back", function()
    local function left()
      return jqs[0]:redis("BITCOUNT", jqs[0].name .. ":left")
    end
    leave(2, 5)
    assert.are.equal(1, left())
    leave(3, 7, { former = { [7] = 0 } })
    assert.are.equal(1, left(), "5 is back")
    leave(4)
    assert.are.equal(0, left())
  end)
  it("does not let a job that failed have its key again", function()
    local mine, others, plain = fail({ name = "a", unique = "k" }), fail({ name = "a", unique = "other" }),
      fail({ name = "a" })
    leave(2, BUCKETS.k)
    assert.are.same({ "CONFLICT", "queued", "queued" }, jqs[0]:call("retry", { ids = { mine, others, plain } }))
    leave(3)
    assert.are.same({ "queued" }, jqs[0]:call("retry", { ids = { mine } }))
  end)
  it("does not let one run again whose route led by it", function()
    local mine = fail({ name = "mail" }, msgpack.pack({ customer = "k" }))
    local others = fail({ name = "mail" }, msgpack.pack({ customer = "other" }))
    local routes = { mail = "argument.customer" }
    leave(2, BUCKETS.k, { routes = routes })
    assert.are.same({ "CONFLICT", "queued" }, jqs[0]:call("retry", { ids = { mine, others } }))
  end)
  it("lets one wait for its backoff, and keep its key", function()
    local id = jqs[0]:call("enqueue", { name = "a", unique = "k", max_retry = 3 }, NIL)[1]
    jqs[0]:fail(jqs[0]:take("a"))
    leave(2, BUCKETS.k)
    assert.are.same({ "queued" }, jqs[0]:call("retry", { ids = { id } }))
  end)
  it("has schedules make nothing here any more", function()
    jqs[0]:call("schedule", { id = "s", every = 10, job = { name = "a" } }, NIL)
    jqs[0]:pass(10)
    jqs[0]:succeed(jqs[0]:take("a"))
    leave(2, BUCKETS.s)
    jqs[0]:pass(100)
    jqs[0]:call("tick", {})
    assert.are.same({}, jqs[0]:pick_ids("a"))
    leave(3)
    jqs[0]:pass(65)
    assert.are.equal(1, #jqs[0]:pick_ids({ queues = "a", count = 20 }), "as catch_up says")
  end)

  describe("schedule, brought from there,", function()
    local function brought(request, had)
      return { id = "s", every = 10, job = { name = "a" }, request = request, had = had }
    end
    local function bring(request, had)
      return jqs[1]:call("schedule", brought(request, had), "\7")
    end
    local function document()
      return msgpack.unpack(jqs[1]:call("schedules", { runs = 5 })[2])
    end

    it("goes on as it was", function()
      local next_ms = jqs[1].now_ms + 3000
      bring("r", { made = 7, next_ms = next_ms, last_ms = next_ms - 10000, last_id = "00000000000001",
        runs = { "00000000000001" } })
      local of = document()
      assert.are.same({ 7, next_ms, next_ms - 10000, "00000000000001", 7 },
        { of.made, of.next_ms, of.last_ms, of.last_id, of.argument })
      assert.are.same({ { id = "00000000000001" } }, of.runs)
      jqs[1]:pass(2.999)
      assert.are.same({}, jqs[1]:pick_ids("a"))
      jqs[1]:pass(0.001)
      assert.are.equal(1, #jqs[1]:pick_ids("a"))
      assert.are.equal(8, document().made)
    end)
    it("does not take the place of one that is there", function()
      jqs[1]:call("schedule", { id = "s", every = 60, job = { name = "b" } }, NIL)
      bring("r", { made = 7 })
      assert.are.same({ 60, 0 }, { document().every, document().made })
    end)
    it("does not come twice", function()
      bring("r", { made = 7 })
      jqs[1]:call("unschedule", { id = "s" })
      jqs[1]:refuses("CONFLICT request: it was brought here before", "schedule",
        brought("r", { made = 7 }), "\7")
      assert.are.equal(1, #jqs[1]:call("schedules", {}))
    end)
  end)

  describe("partition that is no more", function()
    local function over(state)
      local partitions = { { jqs[0].name, "active" }, { jqs[1].name, state } }
      leave(5, nil, { partitions = partitions })
    end
    local elsewhere = "00000000000001" .. "01"

    it("counts as one whose jobs are done, if it is closed", function()
      local id = jqs[0]:call("enqueue", { name = "a", depends = { elsewhere } }, NIL)[1]
      assert.are.equal(1, #jqs:letters(0))
      over("closed")
      assert.are.equal(0, #jqs:letters(0))
      assert.are.same({ id }, jqs[0]:pick_ids("a"))
      local late = jqs[0]:call("enqueue", { name = "late", depends = { elsewhere } }, NIL)[1]
      assert.are.equal(0, #jqs:letters(0))
      assert.are.same({ late }, jqs[0]:pick_ids("late"))
    end)
    it("counts as one whose jobs have failed, if it is lost", function()
      local fails = jqs[0]:call("enqueue", { name = "a", depends = { elsewhere }, if_failed = "fail" }, NIL)[1]
      local runs = jqs[0]:call("enqueue", { name = "a", depends = { elsewhere }, if_failed = "run" }, NIL)[1]
      local waits = jqs[0]:call("enqueue", { name = "a", depends = { elsewhere } }, NIL)[1]
      jqs:carry(0, jqs:letters(0))
      jqs[0]:pass(1)
      over("lost")
      assert.are.equal(0, #jqs:letters(0))
      assert.are.same({ "error", "queued", "blocked" },
        { jqs[0]:get(fails).status, jqs[0]:get(runs).status, jqs[0]:get(waits).status })
    end)
  end)
end)
