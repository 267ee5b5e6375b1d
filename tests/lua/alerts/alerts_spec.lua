local msgpack = require "support.msgpack"
local space = require "support.space"

describe("alerts", function()
  local jq = space.each()

  local function alerts(spec)
    local reply = jq:call("alerts", spec or {})
    local found = {}
    for i = 2, #reply do
      found[i - 1] = msgpack.unpack(reply[i])
    end
    return found, reply[1]
  end
  local function kinds(spec)
    local found = {}
    for i, alert in ipairs(alerts(spec)) do
      found[i] = alert.kind
    end
    return found
  end
  local function only(kind)
    for _, alert in ipairs(alerts()) do
      if alert.kind == kind then
        return alert
      end
    end
    error("no alert " .. kind)
  end
  local function announce(name, queues, running)
    jq:call("register", { announce = true, name = name, queues = queues, running = running or {} })
  end
  --- Some jobs that wait and run for so long, and are part of the statistics.
  local function history(queue, count, wait_s, run_s)
    jq:enqueue_many({ name = queue }, count)
    jq:pass(wait_s)
    local jobs = jq:pick({ queues = queue, count = count })
    jq:pass(run_s)
    for _, job in ipairs(jobs) do
      jq:succeed(job)
    end
  end
  --- The log of the statistics is a part of what is usual once it was folded.
  local function fold()
    for i = 1, 40 do
      jq:enqueue({ name = ("n"):rep(200) .. i, queue = "fold" })
    end
    jq:call("cancel", { where = { queue = "fold" }, count = 1000 })
  end

  describe("of a queue", function()
    it("say that nobody serves it", function()
      jq:enqueue_all("a", "a")
      jq:pass(9)
      assert.are.same({}, kinds())
      jq:pass(1)
      local alert = only("unserved")
      assert.are.same({ "problem", "a", 2 }, { alert.level, alert.queue, alert.jobs })
      assert.are.equal("Queue a: 2 jobs wait, the first for 10 s; nobody serves it", alert.text)
      assert.are.equal(space.START_MS, alert.since_ms)
    end)
    it("say that its workers are too slow, or that none of their attempts ends", function()
      announce("w", { "a" })
      jq:enqueue_all("a", "a", "a")
      local first = jq:take("a")
      jq:pass(20)
      assert.are.equal("stopped", alerts()[1].kind)
      jq:succeed(first)
      assert.are.equal("late", alerts()[1].kind)
      assert.matches("its workers are slower than its jobs come", alerts()[1].text)
    end)
    it("say that no worker knows its jobs", function()
      jq:enqueue({ name = "odd", queue = "a" })
      jq:pass(10)
      jq:call("register", { announce = true, name = "v", queues = { "a" }, running = {}, refused = { "odd" } })
      assert.matches("none of its workers knows jobs named odd$", only("unknown_job").text)
    end)
    it("come later where its jobs usually wait for longer", function()
      history("a", 30, 60, 1)
      fold()
      jq:pass(3 * 3600)
      local function wait(seconds)
        jq:enqueue_all("a", "a")
        jq:pass(seconds)
        jq:succeed(jq:take("a"))
        return kinds()
      end
      announce("w", { "a" })
      jq:enqueue("a")
      jq:pass(100)
      jq:call("tick", { limit = 100 })
      assert.are.same({}, kinds()) -- that no attempt ends says nothing yet
      jq:succeed(jq:take("a"))
      assert.are.same({}, wait(100))
      jq:succeed(jq:take("a"))
      assert.are.same({ "late" }, wait(130))
      assert.matches("the first for 2 min, where 95 % wait at most 60 s", alerts()[1].text, 1, true)
    end)
    it("tell what most of the newest waiting jobs have in common, and those before had not: a limit's key", function()
      announce("w", { "a" })
      jq:constrain({ id = "per-customer", concurrency = 99, by = "argument.customer.id" }, { queue = "a" })
      for i = 1, 60 do
        jq:enqueue("a", msgpack.pack({ customer = { id = "c" .. i % 7 }, shape = 1 }))
      end
      for _, job in ipairs(jq:pick({ queues = "a", count = 60 })) do
        jq:succeed(job)
      end
      for i = 1, 60 do
        jq:enqueue("a", msgpack.pack({ customer = { id = i % 10 == 0 and "c1" or "hooli" }, shape = 1, all = 1 }))
      end
      jq:pass(12)
      local alert = only("late")
      assert.matches("90 %% of the newest have argument.customer.id hooli", alert.text)
      assert.are.equal("problem", alert.level)
    end)
    it("read no more than the beginnings of arguments for it", function()
      announce("w", { "a", "b", "c" })
      for _, queue in ipairs({ "a", "b", "c" }) do
        jq:enqueue_many({ name = queue }, 50, { text = ("x"):rep(20000) })
      end
      jq:pass(12)
      local reply = jq:call("alerts", {})
      assert.are.same({ "", 4 }, { reply[1], #reply })
    end)
    it("say that it is paused, or full", function()
      jq:call("queue", { name = "a", paused = true, max_waiting = 2 })
      jq:enqueue_all("a", "a")
      assert.are.same({ "full", "paused" }, kinds())
    end)
    it("say by which limit its jobs are held", function()
      jq:call("constrain", { id = "one", concurrency = 1 }, msgpack.pack({ name = "a" }))
      jq:enqueue_all("a", "a")
      jq:take("a")
      jq:pass(15)
      local alert = only("late")
      assert.are.same({ "warning", "one" }, { alert.level, alert.constraint })
      assert.matches("held by one$", alert.text)
    end)
    it("name the failed job at the root of a chain, once", function()
      local root = jq:enqueue({ name = "root", max_retry = 0 })
      local middle = jq:enqueue({ name = "b", depends = { root } })
      jq:enqueue({ name = "c", depends = { middle } })
      jq:enqueue({ name = "c", depends = { middle } })
      jq:fail(jq:take("root"))
      local alert = only("blocked")
      assert.are.same({ root, "root", 1 }, { alert.job, alert.queue, alert.jobs })
    end)
    it("say that jobs wait for one that failed and is gone, not for one that is done", function()
      jq:set({ error_max = 0, done_max = 0 })
      local ids = jq:enqueue_all({ name = "a", max_retry = 0 }, "b")
      jq:enqueue({ name = "c", depends = { ids[1] } })
      jq:fail(jq:take("a"))
      jq:tick()
      local alert = only("blocked")
      assert.are.equal("Job " .. ids[1] .. " failed or was cancelled, and is gone, and 1 job waits for it", alert.text)
      assert.are.same({ "c", ids[1], 1 }, { alert.queue, alert.job, alert.jobs })
      jq:call("cancel", { where = { status = "blocked" } })
      jq:enqueue({ name = "c", depends = { ids[2] } })
      jq:succeed(jq:take("b"))
      assert.are.same({}, kinds())
    end)
  end)

  describe("of attempts", function()
    it("say that a worker hangs, though its leases are renewed", function()
      history("a", 30, 0, 1)
      jq:enqueue("a")
      local job = jq:take({ queues = "a", worker = "stuck" })
      for i = 1, 4 do
        jq:pass(6)
        assert.are.equal(i > 3 and "hung", alerts({ queue = "a" })[1] and alerts({ queue = "a" })[1].kind or false)
        assert.are.same({ 30000 }, jq:call("heartbeat", { worker = "stuck", jobs = { jq:held(job) } }))
      end
      local alert = only("hung")
      assert.are.same({ "problem", "a", "stuck", job.id, 1 },
        { alert.level, alert.queue, alert.worker, alert.job, alert.jobs })
      assert.matches("an attempt of a for 24 s", alert.text, 1, true)
    end)
    it("say that more fail than usual", function()
      announce("w", { "a" })
      history("a", 30, 0, 1)
      fold()
      jq:pass(3 * 3600)
      jq:enqueue_many({ name = "a" }, 20)
      local jobs = jq:pick({ queues = "a", count = 20 })
      for i, job in ipairs(jobs) do
        if i <= 8 then
          jq:fail(job, { group = "KeyError", message = "'width'" })
        else
          jq:succeed(job)
        end
      end
      local alert = only("failing")
      assert.are.same({ "problem", "a", "KeyError", 8 }, { alert.level, alert.queue, alert.group, alert.jobs })
      assert.are.equal("Queue a: 40 % of attempts failed in the last 5 min, usually 0 %; the newest with KeyError",
        alert.text)
    end)
    it("say that failures are new", function()
      for _ = 1, 3 do
        jq:enqueue({ name = "a", max_retry = 0 })
        jq:fail(jq:take("a"), { group = "KeyError", message = "'width'" })
      end
      local alert = only("new_failures")
      assert.are.same({ "warning", "KeyError", 3 }, { alert.level, alert.group, alert.jobs })
    end)
    it("cut messages between two characters", function()
      for _ = 1, 3 do
        jq:enqueue({ name = "a", max_retry = 0 })
        jq:fail(jq:take("a"), { message = "x" .. ("ä"):rep(100) })
      end
      assert.truthy(only("new_failures").text:find("x" .. ("ä"):rep(59) .. "$"))
    end)
    it("say that leases lapsed", function()
      jq:enqueue({ name = "a", timeout = 1, max_retry = 3 })
      jq:take("a")
      jq:pass(2)
      jq:call("tick", {})
      assert.are.equal(1, only("lapsed").jobs)
    end)
  end)

  describe("of limits", function()
    it("say that a path leads nowhere and jobs are held for it", function()
      announce("w", { "a" })
      jq:call("constrain", { id = "per tenant", by = "argument.tenant.id", concurrency = 1 },
        msgpack.pack({ name = "a" }))
      jq:enqueue_many({ name = "a" }, 5)
      assert.are.equal(1, #jq:pick({ queues = "a", count = 5 }))
      local alert = only("path")
      assert.are.same({ "problem", "per tenant", 5 }, { alert.level, alert.constraint, alert.jobs })
      assert.matches("argument.tenant.id leads nowhere in 5 jobs, which share one key", alert.text, 1, true)
    end)
  end)

  describe("of workers", function()
    it("say that one cannot be reached", function()
      local id = jq:call("register", { name = "w", queues = { "a" }, url = "http://x/", max_jobs = 1 })
      jq:call("refuse", { worker = id, retry_after = 10, why = "unreachable", jobs = {} })
      assert.are.equal(id, only("unreachable").worker)
    end)
    it("say that one died with its jobs", function()
      local id = jq:register({ url = "http://w/" })
      jq:enqueue("a")
      jq:take({ queues = "a", worker = id })
      jq:pass(31)
      jq:call("tick", {})
      assert.are.equal(1, only("worker_died").jobs)
    end)
  end)

  it("say that nothing sweeps", function()
    jq:enqueue({ name = "a", delay = 5 })
    jq:pass(14)
    assert.are.same({}, kinds())
    jq:pass(2)
    assert.are.same({ "unswept" }, kinds())
  end)
  it("of many queues come in pages", function()
    for i = 1, 900 do
      jq:enqueue(("q%03d"):format(i))
    end
    jq:pass(20)
    local names, cursor, pages = {}, "", 0
    repeat
      local found
      found, cursor = alerts({ cursor = cursor })
      for _, alert in ipairs(found) do
        names[alert.queue] = alert.kind
      end
      pages = pages + 1
    until cursor == ""
    local count = 0
    for _ in pairs(names) do
      count = count + 1
    end
    assert.are.equal(900, count)
    assert.is_true(pages > 5)
  end)
end)
