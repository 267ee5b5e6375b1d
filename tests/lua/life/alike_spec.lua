-- Jobs with the same record start and end together.
local counted_in = require "support.counted"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("jobs that are alike", function()
  local jq = space.each()
  local stats = counted_in(jq)

  local function started(spec, count)
    jq:enqueue_many(spec or { name = "a" }, count)
    return jq:pick({ queues = "a", count = count })
  end

  --- Finishes jobs in one call: each {job, more of its outcome, result}.
  local function finish(...)
    local arguments = { { worker = "worker" } }
    for _, one in ipairs({ ... }) do
      arguments[#arguments + 1] = space.with({ id = one[1].id, token = one[1].token, type = "success" }, one[2])
      arguments[#arguments + 1] = one[3] or msgpack.NIL
      for _, more in ipairs(one[4] or {}) do
        arguments[#arguments + 1] = more
      end
    end
    return jq:call("finish", unpack(arguments))
  end

  it("are given out with their own ids and arguments", function()
    local ids = jq:enqueue_all("a", "a", "a")
    local jobs = jq:pick({ queues = "a", count = 3 })
    assert.are.same(ids, space.ids(jobs))
    for _, job in ipairs(jobs) do
      assert.are.same({ "running", 1 }, { jq:status(job.id), jq:get(job.id).attempt })
    end
    assert.are.same({}, jq:audit())
  end)

  it("start without one that runs already", function()
    local id = started(nil, 1)[1].id
    local others = jq:enqueue_many({ name = "a" }, 2)
    jq:redis("ZADD", require "support.keys"(jq.name).SET .. "q:a", 0, id)
    assert.are.same(others, jq:pick_ids({ queues = "a", count = 3 }))
    assert.are.equal(1, jq:get(id).attempt)
    assert.are.same({}, jq:audit())
  end)

  it("start each where a pick is repeated", function()
    jq:enqueue_many({ name = "a" }, 3)
    local spec = { queues = "a", count = 3, request = "again" }
    local first, again = jq:pick(spec), jq:pick(spec)
    first.next_ms, again.next_ms = nil, nil
    assert.are.same(first, again)
  end)

  it("count each once, also one that is named twice", function()
    for _, is_kept in ipairs({ true, false }) do
      jq:set({ done_max = is_kept and 10 or 0 })
      local a, b = unpack(started(nil, 2))
      assert.are.same({ "done", "done", "done", "done", "done" }, finish({ a }, { a }, { b }, { b }, { a }))
    end
    stats.counted({ enqueued = 4, done = 4 })
    assert.are.same({}, jq:audit())
  end)

  it("end once where one of them ends in two ways", function()
    local a, b = unpack(started(nil, 2))
    assert.are.same({ "retrying", "LOST", "done", "LOST" },
      finish({ a, { type = "failure" } }, { a }, { b }, { b, { type = "failure" } }))
    assert.are.same({ "retrying", "done" }, jq:statuses({ a.id, b.id }))
  end)

  it("end each by its own token", function()
    local a, b, c = unpack(started(nil, 3))
    assert.are.same({ "done", "LOST", "done" }, finish({ a }, { b, { token = "1-000000000000" } }, { c }))
    assert.are.same({ "done", "running", "done" }, jq:statuses({ a.id, b.id, c.id }))
  end)

  it("end each in its own way", function()
    local a, b, c, d = unpack(started(nil, 4))
    assert.are.same({ "done", "retrying", "queued", "done" },
      finish({ a }, { b, { type = "failure" } }, { c, { move = { queue = "b" } } }, { d }))
    assert.are.equal(c.id, jq:take("b").id)
    assert.are.same({ "done", "done" }, jq:statuses({ a.id, d.id }))
    assert.are.same({}, jq:audit())
  end)

  it("have each its own result", function()
    local a, b = unpack(started({ name = "a", keep_result = true }, 2))
    finish({ a, nil, msgpack.pack("first") }, { b, nil, msgpack.pack("second") })
    assert.are.same({ "done", msgpack.pack("first") }, jq:call("result", a.id))
    assert.are.same({ "done", msgpack.pack("second") }, jq:call("result", b.id))
  end)

  it("leave each its tags when their records go", function()
    jq:set({ done_max = 0 })
    local a, b = unpack(started({ name = "a", tags = { "t", "u" } }, 2))
    assert.are.same({ "", { "t", 2 }, { "u", 2 } }, jq:call("tags", {}))
    finish({ a }, { b })
    assert.are.same({ "" }, jq:call("tags", {}))
    assert.are.same({}, jq:audit())
  end)

  it("free who depends on them since this call", function()
    local a, b, c = unpack(started(nil, 3))
    local answers = finish({ a, { enqueue = 1 }, nil,
      { msgpack.pack({ name = "b", depends = { c.id } }), msgpack.NIL } }, { b }, { c })
    assert.are.same({ answers[1][2] }, jq:pick_ids("b"))
  end)

  it("start alone under a limit", function()
    jq:call("constrain", { id = "c", concurrency = 2 }, msgpack.pack({ name = "a" }))
    assert.are.equal(2, #started(nil, 5))
  end)

  it("stop at the bytes that a reply may have", function()
    local long = msgpack.pack(("x"):rep(3 * 1024 * 1024))
    for _ = 1, 4 do
      jq:enqueue("a", long)
    end
    assert.are.equal(2, #jq:pick({ queues = "a", count = 4 }))
    assert.are.equal(2, #jq:pick({ queues = "a", count = 4 }))
  end)

  it("tell each one's events", function()
    jq:set({ events_max = 100 })
    local a, b = unpack(started(nil, 2))
    finish({ a }, { b })
    assert.are.equal(6, jq:redis("XLEN", require "support.keys"(jq.name).EVENTS))
  end)
end)
