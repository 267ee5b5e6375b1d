local msgpack = require "support.msgpack"
local space = require "support.space"

describe("an attempt that waits for others", function()
  local jq = space.each()
  local function started(spec)
    jq:enqueue(spec or "a", "\5")
    return jq:take("a")
  end
  --- Waits for as many children as there are specs.
  ---@return string|table answer
  local function resume(job, more, specs, blob)
    local said = {
      id = job.id, token = job.token, type = "success", resume = more, enqueue = specs and #specs,
    }
    local parts = {}
    for i, spec in ipairs(specs or {}) do
      parts[2 * i - 1], parts[2 * i] = spec, msgpack.NIL
    end
    return jq:call("finish", { worker = "worker" }, said, blob or msgpack.NIL, unpack(parts))[1]
  end
  local function two(job, more)
    more = more or {}
    more.depends = { 0, 1 }
    local answer = resume(job, more, { { name = "b", keep_result = true }, { name = "b", keep_result = true } })
    return answer[1], answer[2], answer[4]
  end

  it("depends on these instead of those before", function()
    local before = jq:enqueue({ name = "b", keep_result = true })
    jq:queue({ name = "b", set = { result_ttl = 10 } })
    jq:succeed(jq:take("b"), "\1")
    local job = started({ name = "a", depends = { before } })
    jq:pass(20)
    jq:tick()
    assert.are.equal(1, jq:get(before).result)
    local _, first = two(job)
    jq:tick()
    jq:refuses("EXPIRED id", "result", before)
    assert.are.equal(2, #jq:get(job.id).depends)
    -- and those stay for it
    jq:succeed(jq:take("b"), "\2")
    jq:pass(20)
    jq:tick()
    assert.are.same({ "done", "\2" }, jq:call("result", first))
  end)
  it("fails when that takes too long to look through for a circle #once", function()
    local job = started()
    jq:enqueue({ name = "b", depends = { job.id } })
    local last = jq:enqueue("c")
    for _ = 1, 1001 do
      last = jq:enqueue({ name = "b", depends = { last } })
    end
    assert.are.equal("error", resume(job, { depends = { last } }))
  end)
  it("fails when there are too many links to look through #once", function()
    local results, ids = {}, jq:enqueue_many({ name = "b" }, 1)
    for _, most in ipairs({ 100, 400 }) do
      while #ids < most do
        ids[#ids + 1] = jq:enqueue({ name = "b", depends = ids })
      end
      local job = started()
      jq:enqueue({ name = "c", depends = { job.id } })
      results[#results + 1] = resume(job, { depends = { ids[most] } })
    end
    assert.are.same({ "blocked", "error" }, results)
  end)
  it("fails when it would wait for itself", function()
    local job = started()
    assert.are.equal("error", resume(job, { depends = { job.id } }))
    assert.are.equal("it would wait for itself", jq:get(job.id).message)
    job = started()
    local answer = resume(job, { depends = { 1 } }, { { name = "b", depends = { job.id } },
      { name = "c", depends = { 0 }, if_failed = "run" } })
    assert.are.equal("error", answer[1])
    assert.are.same({ "blocked", "blocked" }, jq:statuses({ answer[2], answer[4] }))
    assert.are.equal("error", jq:unchanged(function()
      return resume(job, { depends = { 0 } }, { { name = "b" } })
    end))
    job = started({ name = "a", unique = "k" })
    answer = resume(job, { depends = { 0 } }, { { name = "a", unique = "k" } })
    assert.are.same({ "error", job.id, 0 }, answer)
  end)
  it("repeats with the answer of now, and enqueues nothing twice", function()
    local job = started()
    two(job)
    local function again()
      return (resume(job, { depends = { 0, 1 } }, { { name = "b" }, { name = "b" } }))
    end
    assert.are.equal("blocked", jq:unchanged(again))
    jq:call("change", { id = job.id, delay = 60 }, "")
    jq:succeed(jq:take("b"))
    jq:succeed(jq:take("b"))
    jq:tick()
    assert.are.equal("scheduled", again())
    jq:pass(60)
    local next_job = jq:take("a")
    assert.are.equal("queued", again())
    jq:succeed(next_job)
    assert.are.equal("LOST", again())
  end)
  it("gives its units back", function()
    jq:constrain({ id = "c", concurrency = 1 }, { queue = { "a", "b" } })
    jq:enqueue_all("a", "a")
    local job = jq:start_one("a")
    assert.are.same({}, jq:start_ids("a"))
    two(job)
    assert.are.equal(0, jq:constraint("c").running)
    local child = jq:start_one("b")
    assert.are.same({}, jq:start_ids("a"))
    jq:succeed(child)
    jq:succeed(jq:start_one("b"))
    -- Ready again it waits for room as any other.
    local ids = jq:start_ids({ queues = "a", count = 2 })
    assert.are.equal(1, #ids)
  end)
  it("gives them back also when nothing is left to wait for", function()
    local other = started()
    jq:succeed(other)
    jq:constrain({ id = "s", concurrency = 1 }, { queue = "a" })
    jq:enqueue("a")
    local job = jq:start_one("a")
    local first = jq:enqueue({ name = "a", priority = -1 })
    resume(job, { depends = { other.id } })
    assert.are.equal(0, jq:constraint("s").running)
    assert.are.equal(first, jq:start_one("a").id)
  end)
end)
