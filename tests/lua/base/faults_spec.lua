-- Faults of older job queues that must not come back, one test each.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a fault of older queues does not come back:", function()
  local jq = space.each()

  it("a client's clock decides nothing", function()
    jq:enqueue({ name = "a", keep_result = true })
    local job = jq:take("a")
    jq:succeed(job, "\1", { finished_at = "1999-01-01T00:00:00Z" })
    local document = jq:get(job.id)
    assert.are.same({ space.START_MS, "1999-01-01T00:00:00Z" }, { document.ended_ms, document.finished_at })
    jq:settle()
    assert.are.equal("done", jq:status(job.id))
    for _, script in ipairs({ "pick", "tick", "heartbeat", "cancel" }) do
      jq:refuses("INVALID now: unknown field", script, { now = 1 })
    end
  end)
  it("looking changes nothing", function()
    local id = jq:enqueue({ name = "a", delay = 1, tags = { "t" } })
    jq:pass(2) -- due, and nobody swept yet
    jq:unchanged(function()
      jq:get(id)
      jq:explain(id)
      jq:call("history", id)
      jq:call("jobs", {})
      jq:call("jobs", { where = { queue = "a", status = "queued" } })
      jq:call("queues", {})
      jq:call("tags", {})
      jq:call("failures", {})
      jq:call("stats", { by = "hour" })
    end)
    assert.are.same({ id }, jq:pick_ids("a"))
  end)
  it("a retried job that was completed is not handed out again", function()
    jq:set({ retry_base = 1, retry_jitter = 0 })
    jq:enqueue("a")
    local first = jq:take("a")
    jq:pass(31)
    jq:settle()
    jq:pass(2)
    local second = jq:take("a")
    assert.are.equal("LOST", jq:fail(first))
    assert.are.equal("done", jq:succeed(second))
    assert.are.equal("LOST", jq:succeed(first))
    jq:pass(10000)
    jq:settle()
    assert.are.same({}, jq:pick_ids("*"))
    assert.are.same({ done = 1 }, jq:counts("a"))
  end)
  it("counts never go below what there is, however often a thing is said", function()
    jq:enqueue("a")
    local job = jq:take("a")
    for _ = 1, 3 do
      jq:succeed(job)
      jq:fail(job)
      jq:release(job)
      jq:cancel(job.id)
      jq:call("kick", { ids = { job.id } })
    end
    assert.are.same({ done = 1 }, jq:counts("a"))
    jq:call("discard", { ids = { job.id } })
    jq:call("discard", { ids = { job.id } })
    assert.are.same({}, jq:counts("a"))
  end)
  it("a refused call loses no tags", function()
    local id = jq:enqueue({ name = "a", tags = { "t" } })
    jq:take("a")
    jq:refuses("INVALID jobs[0].tags[1]", "change", { id = id, tags = { "x", "x" } }, "")
    assert.are.same({ "CONFLICT" }, jq:call("change", { id = id, tags = {}, priority = 1 }, ""))
    assert.are.same({ "t" }, jq:get(id).tags)
    assert.are.same({ "t", 1 }, jq:call("tags", {})[2])
  end)
  it("equal priorities are first in, first out", function()
    local ids = jq:enqueue_many({ name = "a", priority = -3 }, 700)
    jq:enqueue({ name = "a", priority = -2 })
    local picked = {}
    for _ = 1, 70 do
      for _, id in ipairs(jq:pick_ids({ queues = "a", count = 10 })) do
        picked[#picked + 1] = id
      end
    end
    assert.are.same(ids, picked)
  end)
  it("odd names do not collide", function()
    local names = { "a:b", "a", "a:", ":a", "q:a", "a%", "a\\", "{a}", "d", "w", "a b", "日本", "j:" }
    local ids = {}
    for i, name in ipairs(names) do
      ids[i] = jq:enqueue({ name = name, unique = name, tags = { name } })
    end
    for i, name in ipairs(names) do
      assert.are.same({ queued = 1 }, jq:counts(name))
      assert.are.same({ ids[i] }, jq:pick_ids({ queues = { name } }))
      assert.are.same({ ids[i], 0 }, jq:call("enqueue", { name = name, unique = name }, msgpack.NIL))
    end
  end)
  it("empty lists stay lists, and empty maps maps", function()
    local array, map = "\144", "\128"
    local ids = jq:enqueue_each("a", array, map)
    assert.are.same({ array, map }, { jq:take("a").blob, jq:take("a").blob })
    assert.is_truthy(jq:call("get", ids[1])[1]:find("argument" .. array, 1, true))
    assert.is_truthy(jq:call("get", ids[2])[1]:find("argument" .. map, 1, true))
    jq:register({ url = "http://w/", max_jobs = 1 })
    assert.is_truthy(jq:call("workers", {})[2]:find("refused" .. array, 1, true))
    local id = jq:enqueue({ name = "b", tags = { "t" } })
    jq:call("change", { id = id, tags = msgpack.raw(array) }, "")
    assert.is_nil(jq:get(id).tags)
  end)
  it("big integers are not rounded", function()
    local big = "\207\255\255\255\255\255\255\255\255"
    local other = "\207\255\255\255\255\255\255\255\254"
    jq:constrain({ id = "c", concurrency = 1, by = "argument" }, { name = "a" })
    jq:enqueue_each("a", big, other, big)
    local jobs = jq:start("a")
    assert.are.same({ big, other }, { jobs[1].blob, jobs[2].blob })
  end)
  it("no listing and no clean-up costs more with more jobs #once", function()
    local costs = {}
    for i, count in ipairs({ 200, 4000 }) do
      local queue = "q" .. i
      jq:enqueue_many({ name = queue, tags = { queue } }, count)
      for _ = 1, count / 200 do
        local said = { { worker = "worker" } }
        for _, job in ipairs(jq:pick({ queues = queue, count = 100 })) do
          said[#said + 1] = { id = job.id, token = job.token, type = "success" }
          said[#said + 1] = msgpack.NIL
        end
        jq:call_list("finish", said)
      end
      local page = jq:commands(function()
        jq:call("jobs", { where = { queue = queue }, count = 10 })
        jq:call("jobs", { where = { tag = queue }, count = 10 })
        jq:call("queues", { names = { queue } })
        jq:call("tags", { top = 10 })
        jq:call("stats", { by = "minute", queue = queue })
      end)
      jq:pass(90000)
      local sweep = jq:commands(function()
        jq:tick(50)
      end)
      costs[i] = { page, sweep }
      jq:settle()
    end
    assert.is_true(costs[2][1] <= costs[1][1] + 30, costs[1][1] .. " and " .. costs[2][1] .. " commands")
    assert.is_true(costs[2][2] <= costs[1][2] + 60, costs[1][2] .. " and " .. costs[2][2] .. " commands")
  end)
end)
