local msgpack = require "support.msgpack"
local space = require "support.space"

describe("release", function()
  local jq = space.each()
  local function taken(spec)
    jq:enqueue(spec or "a")
    return jq:take("a")
  end

  it("gives a job back to its queue", function()
    local job = taken()
    assert.are.equal("queued", jq:release(job))
    assert.are.equal(job.id, jq:take("a").id)
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
  it("repeats with the same answer and changes nothing", function()
    local job = taken()
    jq:release(job)
    assert.are.equal("queued", jq:unchanged(function()
      return jq:release(job)
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
  it("takes many, each with its answer", function()
    jq:enqueue_all("a", "b", "c")
    local jobs = jq:pick({ queues = "*", count = 3 })
    jq:succeed(jobs[2])
    local named = { jq:held(jobs[1]), jq:held(jobs[2]), jq:held(jobs[3]), jq:held(space.UNKNOWN_ID) }
    assert.are.same({ "queued", "LOST", "queued", "NOTFOUND" },
      jq:call("release", { worker = "worker", jobs = named }))
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
  it("makes room at a registered worker", function()
    local worker = jq:register({ url = "http://w/" })
    jq:enqueue("a")
    local job = jq:assign()[1]
    assert.are.equal("full", jq:worker(worker).state)
    jq:call("release", { worker = worker, jobs = { jq:held(job) }, delay = 5 })
    assert.are.equal("ready", jq:worker(worker).state)
  end)

end)
