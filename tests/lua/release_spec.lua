local held = require "support.held"
local msgpack = require "support.msgpack"
local space = require "support.space"
local specs = require "support.specs"

describe("release", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)
  local function taken(spec)
    jq:enqueue(spec or "a")
    return jq:take("a")
  end

  it("gives a job back to its queue", function()
    local job = taken()
    assert.are.equal("queued", jq:release(job))
    assert.are.equal(job.id, jq:take("a").id)
  end)
  it("spends no retry", function()
    local job = taken({ name = "a", max_retry = 0 })
    jq:release(job)
    assert.are.equal(0, jq:get(job.id).retry_count)
    assert.are.equal("queued", jq:status(job.id))
  end)
  it("ends the attempt", function()
    local job = taken()
    jq:release(job)
    assert.are.equal("LOST", jq:heartbeat(job))
    assert.are.equal("LOST", jq:succeed(job))
    assert.are.equal(2, jq:take("a").attempt)
  end)
  it("with a delay makes the job scheduled", function()
    local job = taken()
    assert.are.equal("scheduled", jq:release(job, 2.5))
    assert.are.equal(space.START_MS + 2500, jq:get(job.id).due_ms)
    jq:pass(2.5)
    assert.are.equal(job.id, jq:take("a").id)
  end)
  it("with a delay of 0 gives back at once", function()
    assert.are.equal("queued", jq:release(taken(), 0))
  end)
  it("repeats with the same answer and changes nothing", function()
    local job = taken()
    jq:release(job)
    assert.are.equal("queued", jq:unchanged(function()
      return jq:release(job)
    end))
  end)
  it("repeats with a delay", function()
    local job = taken()
    jq:release(job, 5)
    jq:pass(1)
    assert.are.equal("scheduled", jq:unchanged(function()
      return jq:release(job, 5)
    end))
  end)
  it("repeated when the job runs again does not take it away", function()
    local job = taken()
    jq:release(job)
    local again = jq:take("a")
    jq:unchanged(function()
      jq:release(job)
    end)
    assert.are.equal("done", jq:succeed(again))
  end)
  it("of an older attempt is LOST", function()
    local job = taken({ name = "a", retry_base = 0 })
    jq:fail(job)
    jq:take("a")
    assert.are.equal("LOST", jq:unchanged(function()
      return jq:release(job)
    end))
  end)
  it("of a finished job is LOST", function()
    local job = taken()
    jq:succeed(job)
    assert.are.equal("LOST", jq:release(job))
  end)
  it("of a job whose lease ran out is LOST", function()
    local job = taken({ name = "a", timeout = 1 })
    jq:pass(1)
    jq:tick()
    assert.are.equal("LOST", jq:release(job))
  end)
  it("of a job that was cancelled while it ran says so", function()
    local job = taken()
    jq:cancel(job.id)
    assert.are.equal("CANCELLED", jq:release(job))
  end)
  it("of an unknown job is NOTFOUND", function()
    assert.are.equal("NOTFOUND", jq:release({ id = space.UNKNOWN_ID, attempt = 1 }))
  end)
  it("takes many, each with its answer", function()
    jq:enqueue_all("a", "b", "c")
    local jobs = jq:pick({ queues = "*", count = 3 })
    jq:succeed(jobs[2])
    local named = { jq:held(jobs[1]), jq:held(jobs[2]), jq:held(jobs[3]), jq:held(space.UNKNOWN_ID) }
    assert.are.same({ "queued", "LOST", "queued", "NOTFOUND" },
      jq:call("release", { worker = "worker", jobs = named }))
  end)
  it("takes one job twice in a call", function()
    local job = taken()
    assert.are.same({ "queued", "queued" }, jq:call("release", { worker = "worker", jobs = {
      jq:held(job), jq:held(job),
    } }))
    assert.are.same({ queued = 1 }, jq:counts("a"))
  end)

  --- The last event of a job's history.
  local function last_event(id)
    local events = msgpack.unpack(jq:call("history", id)).events
    return events[#events]
  end

  it("with a message says why in the history", function()
    local job = taken()
    jq:call("release", { worker = "worker", jobs = { jq:held(job) }, message = "429: too many requests" })
    assert.are.same({ event = "released", time_ms = space.START_MS, attempt = 1, worker_id = "worker",
      message = "429: too many requests" }, last_event(job.id))
    jq:release(jq:take("a"))
    assert.is_nil(last_event(job.id).message)
  end)
  it("keeps 200 bytes of the message, cut between two characters", function()
    for message, kept in pairs({
      [("x"):rep(65536)] = ("x"):rep(200), [("\195\169"):rep(100)] = ("\195\169"):rep(100),
      ["x" .. ("\195\169"):rep(100)] = "x" .. ("\195\169"):rep(99),
      [("\226\130\172"):rep(100)] = ("\226\130\172"):rep(66),
      [("\240\159\152\128"):rep(49) .. "abc\240\159\152\128"] = ("\240\159\152\128"):rep(49) .. "abc",
    }) do
      local job = taken()
      jq:call("release", { worker = "worker", jobs = { { job.id, job.token } }, message = message })
      assert.are.equal(kept, last_event(job.id).message)
      jq:cancel(job.id)
    end
  end)
  it("repeated with another message changes nothing", function()
    local job = taken()
    jq:call("release", { worker = "worker", jobs = { jq:held(job) }, message = "a" })
    jq:unchanged(function()
      jq:call("release", { worker = "worker", jobs = { jq:held(job) }, message = "b" })
    end)
  end)
  it("into a paused queue leaves the job waiting there", function()
    local job = taken()
    jq:queue({ name = "a", paused = true })
    assert.are.equal("queued", jq:release(job))
    assert.are.same({}, jq:pick_ids("a"))
  end)
  it("into a full queue is no matter", function()
    jq:queue({ name = "a", max_waiting = 1 })
    local job = taken()
    jq:enqueue("a")
    assert.are.equal("queued", jq:release(job))
  end)
  it("makes room at a registered worker", function()
    local worker = jq:register({ url = "http://w/" })
    jq:enqueue("a")
    local job = jq:assign()[1]
    assert.are.equal("full", jq:worker(worker).state)
    jq:call("release", { worker = worker, jobs = { jq:held(job) }, delay = 5 })
    assert.are.equal("ready", jq:worker(worker).state)
  end)

  specs.refused_values(it, function()
    return jq
  end, "release", function(value)
    return { { worker = "w", jobs = { jq:held(space.UNKNOWN_ID) }, delay = value } }
  end, {
    { "a negative delay", -1, "INVALID delay: expected seconds from 0 to 10^10, got -1" },
    { "an infinite delay", msgpack.INFINITY, "INVALID delay: expected seconds from 0 to 10^10, got inf" },
    { "a delay that is no number", msgpack.NAN, "INVALID delay: expected seconds from 0 to 10^10" },
    { "text as delay", "1", 'INVALID delay: expected seconds from 0 to 10^10, got "1"' },
  })
  specs.refused_values(it, function()
    return jq
  end, "release", function(value)
    return { { worker = "w", jobs = { jq:held(space.UNKNOWN_ID) }, message = value } }
  end, {
    { "a number as message", 5, "INVALID message: expected text of at most 65536 bytes, got 5" },
    { "a message that is too long", ("x"):rep(65537), "INVALID message: expected text of at most 65536 bytes, got " },
  })
  held.refused(it, function()
    return jq
  end, "release", 1)
end)
