-- A function library outlives its calls. What it remembers is what bytes say, which nothing can make untrue; what a
-- call notes ends with the call, however that ends.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("what a library remembers", function()
  local jq = space.each()

  local function life(spec)
    local id = jq:enqueue(spec)
    local job = jq:take(spec.queue or spec.name)
    assert.are.equal(id, job.id)
    assert.are.equal("done", jq:succeed(job))
    return id
  end

  local function wipe()
    jq.connection:call_list("DEL", jq:keys())
    jq:set_clock(jq.now_ms)
  end

  it("is nothing of a namespace that was emptied", function()
    life({ name = "a" })
    jq:enqueue("a")
    wipe()
    for _, call in ipairs({ { "enqueue", { name = "a" }, msgpack.NIL }, { "pick", { worker = "w", queues = "a" } } }) do
      jq:refuses("VERSION", unpack(call))
    end
    jq:call("setup")
    local jobs = jq:pick("a")
    assert.are.same({}, space.ids(jobs))
    assert.are.equal(-1, jobs.next_ms)
    life({ name = "a" })
  end)

  it("is nothing of a namespace that was brought back from a copy", function()
    jq:enqueue("a")
    local copy = jq:snapshot()
    jq:queue({ name = "a", paused = true })
    jq:set({ done_max = 0, stats = false })
    assert.are.same({}, jq:pick_ids("a"))
    wipe()
    for key, value in pairs(copy) do
      jq:redis("RESTORE", key, 0, value, "REPLACE")
    end
    local job = jq:take("a")
    jq:succeed(job)
    assert.are.equal("done", jq:status(job.id)) -- its record is kept
  end)

  it("is nothing of another namespace's constraints, nor of those that a copy had", function()
    local other = space.new()
    jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
    other:constrain({ id = "c", concurrency = 1, by = "argument.v" }, { name = "a" })
    local copy = jq:snapshot()
    for _, one in ipairs({ jq, other }) do
      for i = 1, 3 do
        one:enqueue("a", { v = i })
      end
    end
    assert.are.equal(1, #jq:pick({ queues = "a", count = 10 }))
    assert.are.equal(3, #other:pick({ queues = "a", count = 10 }))
    other:close()
    wipe()
    for key, value in pairs(copy) do
      jq:redis("RESTORE", key, 0, value, "REPLACE")
    end
    -- The same number and version as before.
    jq:unconstrain("c")
    jq:constrain({ id = "d", rate = { limit = 2, period = 60 } }, { name = "a" })
    for i = 4, 7 do
      jq:enqueue("a", { v = i })
    end
    assert.are.equal(2, #jq:pick({ queues = "a", count = 10 }))
  end)

  it("takes no more memory, however many wishes there are", function()
    local function memory_after(first, last)
      for i = first, last do
        jq:pick({ worker = ("w"):rep(200) .. i, queues = { "a", "b" } })
      end
      return tonumber(jq:redis("INFO", "memory"):match("used_memory_vm_functions:(%d+)"))
    end
    local before = memory_after(1, 1000)
    local grown = memory_after(1001, 8000) - before -- of each of these wishes some 1500 bytes would be kept
    assert.is_true(grown < 5000000, grown .. " bytes more")
  end)

  it("is nothing of a call that broke off", function()
    jq.is_corrupt = true
    jq:enqueue("a")
    local set = jq.name .. ":q:a"
    jq:redis("SET", set, "no set")
    assert.is_false(pcall(jq.enqueue, jq, { name = "a", tags = { "t" } }))
    assert.is_false(pcall(jq.pick, jq, "a"))
    local other = space.new()
    local before = jq:snapshot()
    local id = other:enqueue("b")
    assert.are.same({ id }, other:pick_ids({ "a", "b" }))
    assert.are.same({}, space.changes(before, jq:snapshot()))
    other:close() -- which audits it
  end)
end)
