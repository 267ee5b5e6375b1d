local msgpack = require "support.msgpack"
local space = require "support.space"

describe("get", function()
  local jq = space.each()

  it("shows a new job whole", function()
    local id = jq:enqueue({ name = "mail", queue = "slow", priority = 7, max_retry = 3, timeout = 1.5,
      keep_result = true }, msgpack.pack({ to = "x" }))
    assert.are.same({
      id = id, name = "mail", queue = "slow", status = "queued", priority = 7, attempt = 0, retry_count = 0,
      max_retry = 3, timeout = 1.5, keep_result = true, created_ms = space.START_MS, argument = { to = "x" },
    }, jq:get(id))
  end)
  it("shows a running job's holder, start and lease", function()
    local id = jq:enqueue("a")
    jq:pass(1)
    jq:take({ worker = "me", queues = "a" })
    local document = jq:get(id)
    assert.are.same({ "running", "me", space.START_MS + 1000, space.START_MS + 31000 },
      { document.status, document.worker_id, document.started_ms, document.due_ms })
    assert.is_nil(document.ended_ms)
  end)
  it("shows the error of a job that waits again or runs again", function()
    local id = jq:enqueue({ name = "a", retry_base = 0 })
    jq:fail(jq:take("a"), { message = "no" }, "\163bad")
    jq:tick()
    assert.are.same({ "queued", "bad" }, { jq:status(id), jq:get(id).error })
    jq:take("a")
    assert.are.same({ "running", "bad" }, { jq:status(id), jq:get(id).error })
  end)
  it("shows the end of a job with a result as when it was done", function()
    local id = jq:enqueue({ name = "a", keep_result = true })
    local job = jq:take("a")
    jq:pass(2)
    jq:succeed(job, "\5")
    assert.are.same({ space.START_MS + 2000, 5 }, { jq:get(id).ended_ms, jq:get(id).result })
    jq:pass(3600)
    jq:settle()
    assert.are.equal(space.START_MS + 2000, jq:get(id).ended_ms)
  end)
  it("shows no result that is due to go", function()
    local id = jq:enqueue({ name = "a", keep_result = true })
    jq:succeed(jq:take("a"), "\5")
    jq:pass(3600)
    assert.is_nil(jq:get(id).result)
  end)
  it("shows a result that holds bin and ext byte for byte", function()
    local blob = "\146\196\3abc\212\1x"
    local id = jq:enqueue({ name = "a", keep_result = true })
    jq:succeed(jq:take("a"), blob)
    assert.is_truthy(jq:call("get", id)[1]:find("\166result" .. blob, 1, true))
  end)
  it("shows an argument that holds bin and ext byte for byte", function()
    local blob = "\146\196\3abc\212\1x"
    local id = jq:enqueue("a", blob)
    assert.is_truthy(jq:call("get", id)[1]:find("\168argument" .. blob, 1, true))
  end)
  it("shows every field at once", function()
    local id = jq:enqueue({ name = "a", queue = "q", retry_base = 2, retry_cap = 9, retry_jitter = 0,
      delay = 0, expires_in = 5, keep_result = true, priority = -1 })
    jq:fail(jq:take("q"), { message = "m", finished_at = "2026-01-31T12:00:00Z" }, "\1")
    local document = jq:get(id)
    for _, field in ipairs({ "id", "name", "queue", "status", "priority", "attempt", "retry_count",
      "max_retry", "timeout", "keep_result", "created_ms", "worker_id", "started_ms", "due_ms", "expires_ms",
      "finished_at",
      "reason", "message", "error", "retry_base", "retry_cap", "retry_jitter" }) do
      assert.is_not_nil(document[field], field)
    end
  end)
  it("answers for each job in its place, nil where unknown", function()
    local made = jq:enqueue_all("a", "b")
    local reply = jq:call("get", made[2], space.UNKNOWN_ID, made[1])
    assert.are.equal("b", msgpack.unpack(reply[1]).name)
    assert.is_nil(reply[2])
    assert.are.equal("a", msgpack.unpack(reply[3]).name)
  end)
  it("changes nothing, whatever is due", function()
    local id = jq:enqueue({ name = "a", delay = 1 })
    jq:pass(5)
    jq:unchanged(function()
      assert.are.equal("scheduled", jq:status(id))
    end)
  end)
end)
