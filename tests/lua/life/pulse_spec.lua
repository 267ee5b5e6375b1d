-- A time in which nobody could call ends no lease.
local space = require "support.space"

describe("a time in which nobody could call", function()
  local jq = space.each()

  --- Calls come for more than a minute; those who hold jobs renew their leases.
  local function calm(...)
    for _ = 1, 7 do
      jq:pass(10)
      for _, job in ipairs({ ... }) do
        jq:heartbeat(job)
      end
      jq:call("tick", {})
    end
  end

  local function started(spec)
    spec = spec or {}
    spec.name, spec.timeout = spec.name or "a", spec.timeout or 30
    jq:enqueue(spec)
    return jq:take(spec.name)
  end

  it("comes on top of the leases that ended in it", function()
    local job = started()
    calm(job)
    local due_ms = jq:get(job.id).due_ms
    jq:pass(100)
    jq:settle()
    assert.are.equal("running", jq:status(job.id))
    assert.are.equal(due_ms + 100000, jq:get(job.id).due_ms)
    assert.are.equal(30000, jq:pick("b").next_ms)
    assert.are.same({}, jq:audit())
    jq:pass(29.999)
    jq:settle()
    assert.are.equal("running", jq:status(job.id))
    jq:pass(0.001)
    jq:settle()
    assert.are.equal("retrying", jq:status(job.id))
  end)
  it("is given once: who could renew and did not is gone", function()
    local job, other = started(), started()
    calm(job, other)
    jq:pass(100)
    jq:settle()
    jq:pass(1)
    jq:heartbeat(other)
    jq:pass(100)
    jq:settle()
    assert.are.same({ "retrying", "running" }, jq:statuses({ job.id, other.id }))
  end)
  it("does not keep a dead worker for ever where somebody looks in now and then", function()
    local dead = jq:register({})
    jq:enqueue({ name = "a", timeout = 1000 })
    local job = jq:take({ worker = dead, queues = "a" })
    for _ = 1, 13 do
      jq:pass(5)
      jq:call("heartbeat", { worker = dead, jobs = {} })
    end
    jq:pass(2)
    for _ = 1, 8 do
      jq:call("tick", {})
      jq:pass(5)
    end
    assert.are.equal("retrying", jq:status(job.id))
    assert.is_nil(jq:worker(dead))
    assert.are.same({}, jq:audit())
  end)
  it("comes on top of a silent worker's time as often as others tell of it", function()
    local worker = jq:register({})
    jq:enqueue({ name = "b", timeout = 1000 })
    local job = jq:take({ worker = worker, queues = "b" })
    local other = started({ timeout = 30 })
    for _ = 1, 7 do
      jq:pass(10)
      jq:call("heartbeat", { worker = worker, jobs = { { other.id, other.token } } })
    end
    for _ = 1, 3 do
      jq:pass(100)
      assert.are.equal(30000, jq:heartbeat(other)) -- another's
      jq:settle()
    end
    assert.are.same({ "running", "running" }, jq:statuses({ job.id, other.id }))
    jq:pass(30)
    jq:settle()
    assert.are.equal("retrying", jq:status(job.id))
  end)
end)
