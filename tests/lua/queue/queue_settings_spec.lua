local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a queue's own settings", function()
  local jq = space.each()

  local function own(name, settings)
    return jq:queue({ name = name, set = settings }).settings
  end
  local function done(name, spec)
    local id = jq:enqueue(spec or name)
    jq:succeed(jq:start_one(name))
    return id
  end
  it("go and come in one call", function()
    own("a", { done_max = 5 })
    assert.are.same({ retry_cap = 3 },
      jq:queue({ name = "a", set = { retry_cap = 3 }, unset = { "done_max" } }).settings)
  end)

  it("say whether records are kept that others do not keep", function()
    jq:set({ done_max = 0, error_ttl = 0, cancelled_max = 0 })
    own("a", { done_max = 10, error_ttl = 100, cancelled_max = 10 })
    local gone, kept = done("b"), done("a")
    assert.are.same({ "gone", "done" }, jq:statuses({ gone, kept }))
    gone, kept = jq:enqueue("b"), jq:enqueue("a")
    jq:cancel(gone)
    jq:cancel(kept)
    assert.are.same({ "gone", "cancelled" }, jq:statuses({ gone, kept }))
    kept = jq:enqueue({ name = "a", max_retry = 0 })
    jq:fail(jq:take("a"))
    assert.are.equal("error", jq:status(kept))
  end)
  it("say it for jobs of a batch, and for what a finish picks", function()
    own("a", { done_max = 0 })
    local ids = jq:enqueue_many({ name = "a" }, 3)
    local jobs = jq:pick({ queues = "a", count = 2 })
    local reply = jq:call("finish", { worker = "worker", pick = { queues = "a" } },
      { id = jobs[1].id, token = jobs[1].token, type = "success" }, msgpack.NIL,
      { id = jobs[2].id, token = jobs[2].token, type = "success" }, msgpack.NIL)
    assert.are.same({ "done", "done" }, { reply[1], reply[2] })
    assert.are.same({ "gone", "gone", "running" }, jq:statuses(ids))
  end)
  it("apply to records that are there", function()
    local id = done("a")
    own("a", { done_ttl = 1 })
    jq:pass(1)
    jq:settle()
    assert.is_nil(jq:status(id))
  end)
  it("that go leave records to the namespace's", function()
    jq:set({ done_ttl = 10 })
    own("a", { done_ttl = 1000 })
    local id = done("a")
    jq:pass(20)
    jq:settle()
    assert.are.equal("done", jq:status(id))
    jq:queue({ name = "a", unset = { "done_ttl" } })
    jq:settle()
    assert.is_nil(jq:status(id))
  end)
  it("say how long jobs keep their leases", function()
    own("a", { lease_grace = 10 })
    jq:enqueue_all({ name = "a", timeout = 5 }, { name = "b", timeout = 5 })
    local mine, other = jq:take("a"), jq:take("b")
    jq:pass(6)
    jq:settle()
    assert.are.same({ "running", "retrying" }, jq:statuses({ mine.id, other.id }))
    jq:pass(9)
    jq:settle()
    assert.are.equal("retrying", jq:status(mine.id))
  end)

  it("cannot be unset under another name, or while they are set", function()
    jq:refuses("INVALID unset[1]: expected one of retry_base, retry_cap, ", "queue",
      { name = "a", unset = { "done_max", "colour" } })
    jq:refuses("INVALID unset[0]: done_max is set in the same call", "queue",
      { name = "a", set = { done_max = 1 }, unset = { "done_max" } })
    jq:refuses("INVALID unset: expected a list of 0 to 100 texts, got \"done_max\"", "queue",
      { name = "a", unset = "done_max" })
  end)
end)
