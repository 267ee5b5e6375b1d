local held = require "support.held"
local msgpack = require "support.msgpack"
local space = require "support.space"
local specs = require "support.specs"

describe("refuse", function()
  local jq, worker
  before_each(function()
    jq = space.new()
    worker = jq:register({ name = "w", url = "http://w/", max_jobs = 3 })
  end)
  after_each(function()
    jq:close()
  end)
  local function current()
    return jq
  end
  local function assigned(spec)
    jq:enqueue(spec or "a")
    return jq:assign()[1]
  end
  local function refuse(job, why, more)
    local spec = { worker = worker, jobs = job and { jq:held(job) } or {}, why = why }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    return jq:call("refuse", spec)[1]
  end

  for _, why in ipairs({ "unknown", "busy", "unreachable", "gone" }) do
    it(why .. " gives the job back, no retry spent", function()
      local job = assigned({ name = "a", max_retry = 0 })
      assert.are.equal("queued", refuse(job, why))
      assert.are.same({ "queued", 0 }, { jq:status(job.id), jq:get(job.id).retry_count })
      assert.are.equal(0, jq:worker(worker).held)
    end)
    it(why .. " of an attempt that is over is LOST", function()
      local job = assigned()
      jq:succeed(job)
      assert.are.equal("LOST", refuse(job, why))
    end)
    it(why .. " repeats with the same answer", function()
      local job = assigned()
      refuse(job, why)
      assert.are.equal("queued", refuse(job, why))
    end)
  end
  it("of a cancelled job says so", function()
    local job = assigned()
    jq:cancel(job.id)
    assert.are.equal("CANCELLED", refuse(job, "busy"))
  end)
  it("of an unknown job says so", function()
    assert.are.equal("NOTFOUND", refuse({ id = space.UNKNOWN_ID, attempt = 1 }, "busy"))
  end)

  describe("unknown", function()
    it("keeps jobs of that name from the worker for good", function()
      refuse(assigned(), "unknown")
      jq:pass(20)
      assert.are.same({}, space.ids(jq:assign()))
      assert.are.same({ "a" }, jq:worker(worker).refused)
    end)
    it("leaves the worker ready for other names", function()
      refuse(assigned(), "unknown")
      local id = jq:enqueue("b")
      assert.are.same({ id }, space.ids(jq:assign()))
    end)
    it("gathers names", function()
      refuse(assigned("a"), "unknown")
      refuse(assigned("b"), "unknown")
      local refused = jq:worker(worker).refused
      table.sort(refused)
      assert.are.same({ "a", "b" }, refused)
    end)
    it("of a lost attempt refuses no name", function()
      local job = assigned()
      jq:succeed(job)
      refuse(job, "unknown")
      assert.are.same({}, jq:worker(worker).refused)
    end)
    it("works for a worker that only picks", function()
      local puller = jq:register({})
      jq:enqueue("a")
      local job = jq:take({ worker = puller, queues = "a" })
      assert.are.same({ "queued" }, jq:call("refuse", { worker = puller, jobs = { jq:held(job) },
        why = "unknown" }))
    end)
  end)

  describe("busy", function()
    it("gives the worker nothing for retry_after", function()
      local job = assigned()
      refuse(job, "busy", { retry_after = 5 })
      assert.are.equal("busy", jq:worker(worker).state)
      jq:pass(4.999)
      assert.are.same({}, space.ids(jq:assign()))
      jq:pass(0.001)
      assert.are.same({ job.id }, space.ids(jq:assign()))
    end)
    it("gives the worker nothing for a second when nothing is said", function()
      refuse(assigned(), "busy")
      jq:pass(0.999)
      assert.are.same({}, space.ids(jq:assign()))
      jq:pass(0.001)
      assert.are.equal(1, #jq:assign())
    end)
    it("leaves its other jobs with the worker", function()
      jq:enqueue_all("a", "a")
      local jobs = jq:assign()
      refuse(jobs[1], "busy")
      assert.are.same({ "queued", "running" }, jq:statuses(space.ids(jobs)))
    end)
    it("is told in next_ms", function()
      refuse(assigned(), "busy", { retry_after = 5 })
      assert.are.equal(5000, jq:assign().next_ms)
    end)
  end)

  describe("unreachable", function()
    it("leaves the worker its other jobs", function()
      jq:enqueue_all("a", "a")
      local jobs = jq:assign()
      refuse(jobs[1], "unreachable")
      assert.are.same({ "queued", "running" }, jq:statuses(space.ids(jobs)))
    end)
    it("gives the worker nothing until it gives a sign of life", function()
      local job = assigned()
      refuse(job, "unreachable", { retry_after = 600 })
      assert.are.same({}, space.ids(jq:assign()))
      jq:call("heartbeat", { worker = worker, jobs = {} })
      assert.are.same({ job.id }, space.ids(jq:assign()))
    end)
    it("gives the worker another chance after retry_after", function()
      local job = assigned()
      refuse(job, "unreachable", { retry_after = 5 })
      jq:pass(5)
      assert.are.same({ job.id }, space.ids(jq:assign()))
    end)
    it("lets others have its jobs", function()
      local job = assigned()
      local other = jq:register({ url = "http://other/" })
      refuse(job, "unreachable")
      assert.are.equal(other, jq:assign()[1].to)
    end)
  end)

  describe("gone", function()
    it("fails the other jobs of the worker with reason timeout", function()
      jq:enqueue_all("a", { name = "a", max_retry = 0 }, "a")
      local jobs = jq:assign()
      refuse(jobs[3], "gone")
      assert.are.same({ "retrying", "error", "queued" }, jq:statuses(space.ids(jobs)))
      assert.are.equal("timeout", jq:get(jobs[1].id).reason)
    end)
    it("makes the worker unreachable until it gives a sign of life", function()
      local job = assigned()
      refuse(job, "gone", { retry_after = 600 })
      assert.are.equal("unreachable", jq:worker(worker).state)
      assert.are.same({}, space.ids(jq:assign()))
      jq:call("heartbeat", { worker = worker, jobs = {} })
      assert.are.same({ job.id }, space.ids(jq:assign()))
    end)
  end)

  it("with a message says why in the history", function()
    local job = assigned()
    refuse(job, "busy", { message = "no room" })
    local events = msgpack.unpack(jq:call("history", job.id)).events
    assert.are.same({ "released", "no room" }, { events[3].event, events[3].message })
  end)
  it("without jobs rests the worker alone", function()
    refuse(nil, "busy")
    assert.are.equal("busy", jq:worker(worker).state)
  end)
  it("of an unknown worker is refused", function()
    local job = assigned()
    jq:refuses('NOTFOUND worker: "' .. space.UNKNOWN_WORKER .. '" is not registered, or was dropped as dead',
      "refuse", { worker = space.UNKNOWN_WORKER, jobs = { jq:held(job) }, why = "busy" })
  end)
  it("of a worker that never registered is refused", function()
    jq:refuses('NOTFOUND worker: "somebody"', "refuse", { worker = "somebody", jobs = {}, why = "busy" })
  end)

  local function with(field)
    return function(value)
      local spec = { worker = worker, jobs = {}, why = "busy" }
      spec[field] = value
      return { spec }
    end
  end
  specs.refused_values(it, current, "refuse", with("why"), {
    { "a missing why", nil, "INVALID why: expected unknown, busy, unreachable or gone, got nothing" },
    { "another why", "tired", 'INVALID why: expected unknown, busy, unreachable or gone, got "tired"' },
  })
  local expected = "INVALID retry_after: expected seconds from 0 to 3600, got "
  specs.refused_values(it, current, "refuse", with("retry_after"), {
    { "a negative retry_after", -1, expected .. "-1" },
    { "a retry_after of more than an hour", 3601, expected .. "3601" },
    { "a retry_after that is no number", msgpack.NAN, expected },
    { "text as retry_after", "1", expected .. '"1"' },
  })
  specs.refused_values(it, current, "refuse", with("message"), {
    { "a number as message", 5, "INVALID message: expected text of at most 65536 bytes, got 5" },
    { "a message that is too long", ("x"):rep(65537), "INVALID message: expected text of at most 65536 bytes, got " },
  })
  held.refused(it, current, "refuse", 0, { why = "busy" })
end)
