local matching = require "support.matching"
local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"
local specs = require "support.specs"

local NIL = msgpack.NIL
local NAME = "text of 1 to 255 bytes, valid UTF-8, no control characters"

describe("pick", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)
  local function current()
    return jq
  end

  describe("a job that is picked", function()
    it("comes with its document and its argument", function()
      local id = jq:enqueue({ name = "mail", queue = "slow", priority = -3, timeout = 2.5 }, "\163abc")
      local reply = jq:call("pick", { worker = "w", queues = "slow" })
      local document = msgpack.unpack(reply[2])
      assert.is_truthy(document.token:find("^1%-%x%x%x%x%x%x%x%x%x%x%x%x$"))
      assert.are.same({ id = id, token = document.token, name = "mail", queue = "slow", priority = -3, attempt = 1,
        retry_count = 0, timeout = 2.5 }, document)
      assert.are.equal("\163abc", reply[3])
      assert.are.equal(3, #reply)
    end)
    it("has a document of any number of members", function()
      -- More than workers are told of today: all that a job can have.
      local source, changed = server.source("settable", "pick"):gsub('"max_runtime", "headers" }',
        '"max_runtime", "headers", "tags", "unique", "unique_for", "retry_base", "retry_cap", "retry_jitter" }')
      assert.are.equal(1, changed)
      local told = { max_runtime = 5, headers = { tenant = "é" }, tags = { "x", "y" }, unique = "k", unique_for = 5,
        retry_base = 1, retry_cap = 2, retry_jitter = 0.5 }
      local first = jq:enqueue("a")
      local spec = { name = "b", depends = { first } }
      for field, value in pairs(told) do
        spec[field] = value
      end
      told.id = jq:enqueue(spec)
      jq:succeed(jq:take("a"))
      local wish = msgpack.pack({ worker = "w", queues = "b" })
      local document = jq:redis("EVAL", source, 2, jq.name, jq.name .. ":meta", wish)[2]
      assert.are.equal(#document + 1, matching.module("values.msgpack").skip(document, 1))
      local members = 0
      for field, value in pairs(msgpack.unpack(document)) do
        members = members + 1
        assert.are.same(told[field] or value, value)
      end
      assert.are.equal(17, members)
    end)
    it("runs", function()
      local id = jq:enqueue("a")
      jq:take({ queues = "a", worker = "the worker" })
      jq:pass(1)
      local document = jq:get(id)
      assert.are.same({ "running", "the worker", 1, space.START_MS, space.START_MS + 30000 },
        { document.status, document.worker_id, document.attempt, document.started_ms, document.due_ms })
    end)
    it("is not given to a second worker", function()
      jq:enqueue("a")
      jq:take("a")
      assert.are.same({}, jq:pick_ids({ queues = "a", worker = "other" }))
    end)
    it("starts as attempt 2 after a failure", function()
      jq:enqueue({ name = "a", retry_base = 0 })
      jq:fail(jq:take("a"))
      local job = jq:take("a")
      assert.are.same({ 2, 1 }, { job.attempt, job.retry_count })
    end)
    it("starts as attempt 2 after it was given back, with no retry spent", function()
      jq:enqueue("a")
      jq:release(jq:take("a"))
      local job = jq:take("a")
      assert.are.same({ 2, 0 }, { job.attempt, job.retry_count })
    end)
  end)

  describe("order", function()
    it("is by priority, then by enqueueing", function()
      local ids = jq:enqueue_all({ name = "a", priority = 1 }, { name = "a" }, { name = "a", priority = -1 },
        "a")
      assert.are.same({ ids[3], ids[2], ids[4], ids[1] }, jq:pick_ids({ queues = "a", count = 4 }))
    end)
    it("holds at the ends of 32 bits", function()
      local ids = jq:enqueue_all({ name = "a", priority = 2147483647 }, { name = "a",
        priority = -2147483648 }, { name = "a", priority = 2147483646 })
      assert.are.same({ ids[2], ids[3], ids[1] }, jq:pick_ids({ queues = "a", count = 4 }))
    end)
    it("holds over the queues that are named", function()
      local ids = jq:enqueue_all({ name = "a", priority = 1 }, "b", { name = "c", priority = -1 }, "a", "b")
      assert.are.same({ ids[2], ids[4], ids[5], ids[1] }, jq:pick_ids({ queues = { "a", "b" }, count = 9 }))
    end)
    it("holds over picks of one", function()
      local ids = jq:enqueue_all("b", "a", "b", "a")
      local picked = {}
      for i = 1, 4 do
        picked[i] = jq:take({ "a", "b" }).id
      end
      assert.are.same(ids, picked)
    end)
    it("keeps the old place of a job that was given back", function()
      local ids = jq:enqueue_all("a", "a")
      jq:release(jq:take("a"))
      assert.are.same(ids, jq:pick_ids({ queues = "a", count = 2 }))
    end)
    it("keeps the old place of a job that is tried again", function()
      local ids = jq:enqueue_all({ name = "a", retry_base = 0 }, "a")
      jq:fail(jq:take("a"))
      assert.are.same(ids, jq:pick_ids({ queues = "a", count = 2 }))
    end)
  end)

  describe("order = ordered", function()
    it("takes everything of the first entry, then of the second", function()
      local ids = jq:enqueue_all("b", "a", "b", { name = "a", priority = 5 })
      assert.are.same({ ids[2], ids[4], ids[1], ids[3] },
        jq:pick_ids({ queues = { "a", "b" }, order = "ordered", count = 9 }))
    end)
    it("stops at count", function()
      local ids = jq:enqueue_all("b", "a", "a", "a")
      assert.are.same({ ids[2], ids[3] }, jq:pick_ids({ queues = { "a", "b" }, order = "ordered",
        count = 2 }))
    end)
    it("takes patterns as entries", function()
      local ids = jq:enqueue_all("x", "mail.b", "mail.a")
      assert.are.same({ ids[2], ids[3], ids[1] },
        jq:pick_ids({ queues = { "mail.*", "*" }, order = "ordered", count = 9 }))
    end)
  end)

  describe("order = round_robin", function()
    it("takes the entries in turn", function()
      local ids = jq:enqueue_all("a", "a", "a", "b", "b")
      local picked = {}
      for i = 1, 5 do
        picked[i] = jq:take({ queues = { "a", "b" }, order = "round_robin" }).id
      end
      assert.are.same({ ids[1], ids[4], ids[2], ids[5], ids[3] }, picked)
    end)
    it("takes the entries in turn within one call", function()
      local ids = jq:enqueue_all("a", "a", "a", "b", "b")
      assert.are.same({ ids[1], ids[4], ids[2], ids[5], ids[3] },
        jq:pick_ids({ queues = { "a", "b" }, order = "round_robin", count = 9 }))
    end)
    it("passes over entries that are empty", function()
      local ids = jq:enqueue_all("c", "c")
      assert.are.same(ids, jq:pick_ids({ queues = { "a", "b", "c" }, order = "round_robin", count = 3 }))
    end)
  end)

  describe("order = shuffled", function()
    it("takes all there is", function()
      local ids = jq:enqueue_all("a", "b", "c", "a", "b", "c")
      local picked = jq:pick_ids({ queues = { "a", "b", "c" }, order = "shuffled", count = 9 })
      table.sort(picked)
      assert.are.same(ids, picked)
    end)
    it("does not always begin with the same entry", function()
      for _, name in ipairs({ "a", "b", "c" }) do
        jq:enqueue_many({ name = name }, 40)
      end
      local seen = {}
      for _ = 1, 40 do
        seen[jq:take({ queues = { "a", "b", "c" }, order = "shuffled" }).name] = true
      end
      assert.are.same({ a = true, b = true, c = true }, seen)
    end)
  end)

  describe("queues", function()
    it("may be one name", function()
      assert.are.same({ jq:enqueue("a") }, jq:pick_ids({ queues = "a" }))
    end)
    it("may be all", function()
      local ids = jq:enqueue_all("a", "b")
      assert.are.same(ids, jq:pick_ids({ queues = "*", count = 5 }))
    end)
    it("may not be known yet", function()
      assert.are.same({}, jq:pick_ids("nobody.knows"))
      assert.are.same({}, jq:pick_ids({ "nobody.knows", "nor.this" }))
      assert.are.same({}, jq:pick_ids("nobody.*"))
    end)
    it("named twice give each job once", function()
      local ids = jq:enqueue_all("a", "a", "a")
      assert.are.same(ids, jq:pick_ids({ queues = { "a", "a" }, count = 5 }))
    end)
    it("may be 100", function()
      local names = {}
      for i = 1, 100 do
        names[i] = "q" .. i
      end
      assert.are.same({ jq:enqueue("q100") }, jq:pick_ids(names))
    end)
    it("that are paused give nothing", function()
      jq:enqueue_all("a", "b")
      jq:queue({ name = "a", paused = true })
      assert.are.same({}, jq:pick_ids("a"))
      assert.are.equal("b", jq:take({ "a", "b" }).name)
      assert.are.same({}, jq:pick_ids("*"))
    end)
  end)

  describe("count", function()
    it("is the most that is given", function()
      local ids = jq:enqueue_all("a", "a", "a")
      assert.are.same({ ids[1], ids[2] }, jq:pick_ids({ queues = "a", count = 2 }))
    end)
    it("is 1 when nothing is said", function()
      jq:enqueue_all("a", "a")
      assert.are.equal(1, #jq:pick("a"))
    end)
    it("may be 1000", function()
      local ids = jq:enqueue_many({ name = "a" }, 1001)
      local picked = jq:pick_ids({ queues = "a", count = 1000 })
      assert.are.equal(1000, #picked)
      assert.are.equal(ids[1000], picked[1000])
    end)
    it("of 1000 may come from many queues", function()
      for i = 1, 40 do
        jq:enqueue_many({ name = "q" .. i }, 30)
      end
      local picked = jq:pick_ids({ queues = "*", count = 1000 })
      assert.are.equal(1000, #picked)
      for i = 2, 1000 do
        assert.is_true(picked[i - 1] < picked[i])
      end
    end)
  end)

  describe("next_ms", function()
    it("is -1 when nothing is planned", function()
      assert.are.equal(-1, jq:pick("a").next_ms)
    end)
    it("is the time until a scheduled job", function()
      jq:enqueue({ name = "a", delay = 5 })
      jq:pass(1)
      assert.are.equal(4000, jq:pick("a").next_ms)
    end)
    it("is the time until a lease ends", function()
      jq:enqueue({ name = "a", timeout = 7 })
      assert.are.equal(7000, jq:pick("a").next_ms)
    end)
    it("is the time until a retry", function()
      jq:enqueue({ name = "a", retry_jitter = 0, retry_base = 3 })
      jq:fail(jq:take("a"))
      assert.are.equal(3000, jq:pick("a").next_ms)
    end)
    it("is the time until a job expires", function()
      jq:enqueue({ name = "a", expires_in = 9 })
      assert.are.equal(9000, jq:pick("b").next_ms)
    end)
    it("is 0 when more is due than a pick moves", function()
      jq:enqueue_many({ name = "a", delay = 1 }, 150)
      jq:pass(1)
      assert.are.equal(0, jq:pick("b").next_ms)
    end)
  end)

  describe("what is due", function()
    it("is moved first", function()
      local id = jq:enqueue({ name = "a", delay = 1 })
      jq:pass(1)
      assert.are.equal(id, jq:take("a").id)
    end)
    it("is moved whatever queue it belongs to", function()
      local id = jq:enqueue({ name = "a", delay = 1 })
      jq:pass(1)
      jq:pick("b")
      assert.are.equal("queued", jq:status(id))
    end)
    it("is moved a hundred steps at a time", function()
      local ids = jq:enqueue_many({ name = "a", delay = 1 }, 150)
      jq:pass(1)
      jq:pick("b")
      assert.are.same({ queued = 100, scheduled = 50 }, jq:counts("a"))
      jq:pick("b")
      assert.are.same({ queued = 150 }, jq:counts("a"))
      assert.are.equal(ids[1], jq:take("a").id)
    end)
    it("does not end more than some hundred expired jobs in one call", function()
      jq:enqueue_many({ name = "a", expires_in = 1 }, 1000)
      jq:pass(1)
      local jobs = jq:pick("a")
      assert.are.same({ 0, 0 }, { jobs.next_ms, #jobs })
      assert.is_true(jq:counts("a").error <= 300)
      local calls = 0
      repeat
        jobs = jq:pick("a")
        calls = calls + 1
      until jobs.next_ms ~= 0 or calls > 20
      assert.are.equal(1000, jq:counts("a").error)
    end)
    it("does not end more than some hundred expired jobs over patterns", function()
      jq:enqueue_many({ name = "a", expires_in = 1 }, 1000)
      jq:pass(1)
      assert.are.equal(0, jq:pick("*").next_ms)
      assert.is_true(jq:counts("a").error <= 300)
    end)
    it("does not keep a good job behind expired ones", function()
      jq:enqueue_many({ name = "a", expires_in = 1 }, 150)
      local good = jq:enqueue("a")
      jq:pass(1)
      local job
      for _ = 1, 5 do
        job = job or jq:take("a")
      end
      assert.are.equal(good, job.id)
    end)
  end)

  describe("a lease", function()
    it("that ran out spends an attempt", function()
      local id = jq:enqueue({ name = "a", timeout = 5 })
      jq:take("a")
      jq:pass(5)
      jq:pick("b")
      local document = jq:get(id)
      assert.are.same({ "retrying", 1, "timeout" }, { document.status, document.retry_count,
        document.reason })
    end)
    it("that has a millisecond left is good", function()
      local id = jq:enqueue({ name = "a", timeout = 5 })
      jq:take("a")
      jq:pass(4.999)
      jq:pick("b")
      assert.are.equal("running", jq:status(id))
    end)
    it("that ran out is found wherever it stands", function()
      local ids = jq:enqueue_all({ name = "a", timeout = 100 }, { name = "a", timeout = 5 },
        { name = "b", timeout = 100 })
      jq:pick({ queues = "*", count = 3 })
      jq:pass(5)
      jq:pick("c")
      assert.are.same({ "running", "retrying", "running" }, jq:statuses(ids))
    end)
    it("that ran out for the last time ends the job", function()
      local id = jq:enqueue({ name = "a", timeout = 5, max_retry = 0 })
      jq:take("a")
      jq:pass(5)
      jq:pick("b")
      local document = jq:get(id)
      assert.are.same({ "error", "timeout" }, { document.status, document.reason })
    end)
    it("does not run out when the clock is set back", function()
      local id = jq:enqueue({ name = "a", timeout = 5 })
      jq:take("a")
      jq:pass(-3600)
      jq:pick("b")
      assert.are.equal("running", jq:status(id))
    end)
    it("runs out once when the clock jumps ahead", function()
      local id = jq:enqueue({ name = "a", timeout = 5 })
      jq:take("a")
      jq:pass(365 * 86400)
      jq:pick("b")
      local document = jq:get(id)
      assert.are.same({ "retrying", 1, 1 }, { document.status, document.retry_count, document.attempt })
    end)
    it("of a job started after the clock was set back is its timeout long", function()
      jq:enqueue_all("a", "a")
      jq:take("a")
      jq:pass(-60)
      local job = jq:take("a")
      jq:pass(29.999)
      jq:tick()
      assert.are.equal("running", jq:status(job.id))
      jq:pass(0.001)
      jq:tick()
      assert.are.equal("retrying", jq:status(job.id))
    end)
  end)

  describe("request", function()
    local function pick(more)
      local spec = { queues = "a", count = 2, request = "r" }
      for field, value in pairs(more or {}) do
        spec[field] = value
      end
      return jq:pick(spec)
    end

    it("repeated gives the same jobs and starts nothing", function()
      jq:enqueue_all("a", "a", "a")
      local first = pick()
      local second = jq:unchanged(pick)
      first.next_ms = 0 -- nobody has looked for more
      assert.are.same(first, second)
      assert.are.same({ 1, 1 }, { second[1].attempt, second[2].attempt })
      assert.are.same({ queued = 1, running = 2 }, jq:counts("a"))
    end)
    it("repeated leaves out what this attempt holds no more", function()
      local ids = jq:enqueue_all("a", "a", "a")
      jq:succeed(pick()[1])
      assert.are.same({ ids[2] }, space.ids(pick()))
    end)
    it("repeated leaves out a job that runs as another attempt", function()
      jq:enqueue("a")
      jq:release(pick()[1])
      jq:take("a")
      assert.are.same({}, space.ids(pick()))
    end)
    it("repeated when nothing of it runs any more is told to go on, not to sleep", function()
      jq:enqueue_all("a", { name = "a", delay = 100 })
      local job = pick({ count = 1 })[1]
      jq:succeed(job)
      local jobs = jq:unchanged(function()
        return pick({ wait = { on = "all", ms = 1000 } })
      end)
      assert.are.same({}, space.ids(jobs))
      assert.are.equal(0, jobs.next_ms)
    end)
    it("that found nothing may find something later", function()
      assert.are.same({}, space.ids(pick()))
      local id = jq:enqueue("a")
      assert.are.same({ id }, space.ids(pick()))
    end)
    it("is remembered for request_ttl", function()
      local ids = jq:enqueue_all({ name = "a", timeout = 4000 }, "a")
      pick({ count = 1 })
      jq:pass(599.999)
      assert.are.same({ ids[1] }, space.ids(pick({ count = 1 })))
      jq:pass(0.001)
      assert.are.same({ ids[2] }, space.ids(pick({ count = 1 })))
    end)
    it("repeated renews the leases: nobody had the jobs yet", function()
      jq:enqueue({ name = "a", timeout = 10, max_retry = 0 })
      pick()
      jq:pass(9)
      local job = pick()[1]
      jq:pass(9)
      jq:tick()
      assert.are.equal("done", jq:succeed(job))
    end)
    it("repeated renews no lease beyond max_runtime", function()
      local id = jq:enqueue({ name = "a", timeout = 10, max_runtime = 12, max_retry = 0 })
      pick()
      jq:pass(9)
      pick()
      jq:pass(3)
      jq:tick()
      assert.are.equal("error", jq:status(id))
    end)
    describe("repeated when the lease ran out", function()
      local function lapsed(spec)
        spec.name, spec.timeout = "a", 10
        local id = jq:enqueue(spec)
        local job = pick()[1]
        jq:pass(10)
        jq:tick()
        return id, job
      end
      it("has the job wait again at once, and no retry spent", function()
        local id, job = lapsed({ max_retry = 1, retry_base = 100 })
        assert.are.same({ "retrying", 1 }, { jq:get(id).status, jq:get(id).retry_count })
        assert.are.same({}, space.ids(pick()))
        assert.are.same({ "queued", 0 }, { jq:get(id).status, jq:get(id).retry_count })
        jq:unchanged(pick) -- once is enough
        assert.are.equal("LOST", jq:succeed(job))
        assert.are.equal("done", jq:succeed(jq:take("a")))
      end)
      it("spends no retry of a job that waits again already", function()
        local id = lapsed({ retry_base = 0 })
        assert.are.same({ "queued", 1 }, { jq:get(id).status, jq:get(id).retry_count })
        pick()
        assert.are.same({ "queued", 0 }, { jq:get(id).status, jq:get(id).retry_count })
      end)
      it("spends no retry of a job that another runs", function()
        local id = lapsed({ max_retry = 1, retry_base = 0, retry_jitter = 0 })
        jq:take("a")
        pick()
        assert.are.same({ "running", 0 }, { jq:get(id).status, jq:get(id).retry_count })
        jq:unchanged(pick)
        jq:pass(10) -- that one had it
        jq:tick()
        assert.are.same({ "queued", 1 }, { jq:get(id).status, jq:get(id).retry_count })
      end)
      it("forgives no other attempt than its own", function()
        local id = lapsed({ max_retry = 5, retry_base = 0 })
        jq:take("a")
        jq:pass(10)
        jq:tick()
        jq:unchanged(pick)
        assert.are.equal(2, jq:get(id).retry_count)
      end)
      it("leaves a job that has ended as it is", function()
        local id = lapsed({ max_retry = 0 })
        jq:unchanged(pick)
        assert.are.equal("error", jq:status(id))
      end)
    end)
    it("of another length, or not at the end, is the same", function()
      jq:enqueue_all("a", "a", "a")
      for _, token in ipairs({ "0123456789abcdef", "0123456789abcdeg", ("r"):rep(17) }) do
        local blob = "\131\166worker\161w\166queues\161a\167request" .. msgpack.pack(token)
        local first = jq:call("pick", blob)
        assert.are.equal(first[2], jq:call("pick", blob)[2])
      end
      assert.are.same({ running = 3 }, jq:counts("a"))
      jq:refuses("INVALID", "pick", "\131\166worker\161w\166queues\161a")
    end)
    it("repeated is a sign of life", function()
      local worker = jq:register({})
      jq:enqueue("a")
      pick({ worker = worker })
      jq:pass(20)
      pick({ worker = worker })
      assert.are.equal(space.START_MS + 20000, jq:worker(worker).seen_ms)
    end)
  end)

  describe("a registered worker", function()
    it("gives a sign of life", function()
      local worker = jq:register({})
      jq:pass(5)
      jq:pick({ worker = worker, queues = "a" })
      assert.are.equal(space.START_MS + 5000, jq:worker(worker).seen_ms)
    end)
    it("holds what it picks", function()
      local worker = jq:register({ max_jobs = 5 })
      jq:enqueue_all("a", "a")
      jq:pick({ worker = worker, queues = "a", count = 2 })
      assert.are.equal(2, jq:worker(worker).held)
    end)
    it("that is not known is refused", function()
      jq:enqueue("a")
      jq:refuses("NOTFOUND worker: " .. space.UNKNOWN_WORKER .. " is not registered, or was dropped as dead",
        "pick", { worker = space.UNKNOWN_WORKER, queues = "a" })
    end)
  end)

  describe("worker", function()
    specs.refused_values(it, current, "pick", function(value)
      return { { worker = value, queues = "a" } }
    end, {
      { "a missing worker", nil, "INVALID worker: expected " .. NAME .. ", got nothing" },
      { "an empty worker", "", "INVALID worker: expected " .. NAME .. ', got ""' },
      { "a number as worker", 1, "INVALID worker: expected " .. NAME .. ", got 1" },
      { "a worker of 256 bytes", ("w"):rep(256), "INVALID worker: expected " .. NAME },
    })
    it("takes a worker of 255 bytes", function()
      jq:enqueue("a")
      local job = jq:take({ worker = ("w"):rep(255), queues = "a" })
      assert.are.equal(("w"):rep(255), jq:get(job.id).worker_id)
    end)
  end)

  local function with(field)
    return function(value)
      local spec = { worker = "w", queues = "a" }
      spec[field] = value
      return { spec }
    end
  end

  describe("queues", function()
    local expected = 'INVALID queues: expected "*", a name, or a list of 1 to 100 names and patterns, got '
    local many = {}
    for i = 1, 101 do
      many[i] = "q" .. i
    end
    specs.refused_values(it, current, "pick", with("queues"), {
      { "missing queues", nil, expected .. "nothing" },
      { "no queues", {}, expected .. "an empty list or map" },
      { "101 queues", many, expected .. "a list" },
      { "a map of queues", { a = "a" }, expected .. "a map" },
      { "a number as queues", 1, expected .. "1" },
      { "an empty queue", "", "INVALID queues: expected " .. NAME .. ', got ""' },
      { "a number among the queues", { "a", 2 }, "INVALID queues[1]: expected " .. NAME .. ", got 2" },
      { "an empty queue in a list", { "a", "b", "" }, "INVALID queues[2]: expected " .. NAME .. ', got ""' },
    })
  end)

  describe("count", function()
    local expected = "INVALID count: expected an integer from 1 to 1000, got "
    specs.refused_values(it, current, "pick", with("count"), {
      { "0", 0, expected .. "0" },
      { "1001", 1001, expected .. "1001" },
      { "1.5", 1.5, expected .. "1.5" },
      { "text", "1", expected .. '"1"' },
      { "what is no number", msgpack.NAN, expected },
    })
  end)

  describe("order", function()
    specs.refused_values(it, current, "pick", with("order"), {
      { "another word", "random",
        'INVALID order: expected priority, ordered, round_robin or shuffled, got "random"' },
      { "a number", 1, "INVALID order: expected priority, ordered, round_robin or shuffled, got 1" },
    })
  end)

  describe("request", function()
    specs.refused_values(it, current, "pick", with("request"), {
      { "an empty token", "", 'INVALID request: expected text of 1 to 200 bytes, got ""' },
      { "a token of 201 bytes", ("r"):rep(201), "INVALID request: expected text of 1 to 200 bytes" },
      { "a number", 5, "INVALID request: expected text of 1 to 200 bytes, got 5" },
    })
  end)

  describe("wait", function()
    local on = "INVALID wait.on: expected 1 to 64 of A-Z a-z 0-9 . _ -, got "
    local ms = "INVALID wait.ms: expected milliseconds from 1 to 60000, got "
    specs.refused_values(it, current, "pick", with("wait"), {
      { "a number", 1, "INVALID wait: expected a map with on and ms, got 1" },
      { "no channel", { ms = 1 }, on .. "nothing" },
      { "an empty channel", { on = "", ms = 1 }, on .. '""' },
      { "a channel of 65 bytes", { on = ("c"):rep(65), ms = 1 }, on },
      { "a channel with a blank", { on = "a b", ms = 1 }, on .. '"a b"' },
      { "a channel with a colon", { on = "a:b", ms = 1 }, on .. '"a:b"' },
      { "no ms", { on = "c" }, ms .. "nothing" },
      { "0 ms", { on = "c", ms = 0 }, ms .. "0" },
      { "60001 ms", { on = "c", ms = 60001 }, ms .. "60001" },
      { "text as ms", { on = "c", ms = "5" }, ms .. '"5"' },
      { "an unknown field", { on = "c", ms = 5, of = 1 },
        "INVALID wait.of: unknown field, did you mean on?" },
    })
  end)

  it("refuses what is a misspelt field, with a suggestion", function()
    jq:refuses("INVALID queue: unknown field, did you mean queues?", "pick", { worker = "w", queue = "a" })
  end)

  specs.one_spec(it, current, "pick", { worker = "w", queues = "a" })

  it("takes nothing when it is refused", function()
    jq:enqueue("a", NIL)
    jq:refuses("INVALID count", "pick", { worker = "w", queues = "a", count = -1 })
    assert.are.same({ queued = 1 }, jq:counts("a"))
  end)
end)
