-- The scripts schedule, unschedule and schedules.
local msgpack = require "support.msgpack"
local space = require "support.space"

local START_MS = space.START_MS -- a Tuesday, 2023-11-14 22:13:20

describe("a schedule", function()
  local jq = space.each()

  --- Sets a schedule, of jobs that may run for long.
  ---@return table document
  local function schedule(more, argument)
    local spec = space.with({ id = "s", job = { name = "a", timeout = 4e6 } }, more)
    spec.every = spec.every or not spec.cron and 10 or nil
    return msgpack.unpack(jq:call("schedule", spec, argument or msgpack.NIL))
  end

  local function shown(more)
    return msgpack.unpack(jq:call("schedules", space.with({ ids = { "s" } }, more))[2])
  end

  --- Takes the jobs that were made and wait.
  ---@return number[] their moments, in seconds from the start
  local function made()
    local found = {}
    for i, job in ipairs(jq:pick({ queues = "*", count = 1000 })) do
      found[i] = (job.schedule_ms - START_MS) / 1000
    end
    return found
  end

  it("makes the job as its spec says, which tells the schedule and the moment", function()
    local argument = "\131\161a\202\63\128\0\0\161b\196\1x\161c\199\1\5y"
    schedule({ job = { name = "mail", queue = "q", priority = -3, max_retry = 2, keep_result = true, timeout = 7.5,
      tags = { "x", "y" }, retry_base = 0.5 } }, argument)
    jq:pass(13)
    local job = jq:take("*")
    assert.are.same({ "mail", "q", -3, 7.5, argument, 1, "s", START_MS + 10000 }, { job.name, job.queue, job.priority,
      job.timeout, job.blob, job.attempt, job.schedule, job.schedule_ms })
    local document = jq:get(job.id)
    assert.are.same({ 2, true, { "x", "y" }, 0.5, "s" }, { document.max_retry, document.keep_result, document.tags,
      document.retry_base, document.schedule })
  end)
  it("has its moments at multiples since 1970, not from now", function()
    jq:pass(3)
    assert.are.equal(START_MS + 10000, schedule().next_ms)
    assert.are.same({ START_MS + 10000, START_MS + 20000 }, shown({ next = 2 }).next)
  end)
  it("has the moments of a cron expression, by the clocks of a zone", function()
    local zone = { cron = "*/15 9-17 * * mon-fri", timezone = "Europe/Berlin", tz = "CET-1CEST,M3.5.0,M10.5.0/3" }
    assert.are.equal("2023-11-15 08:00", os.date("!%Y-%m-%d %H:%M", schedule(zone).next_ms / 1000))
    assert.are.equal(100, #shown({ next = 100 }).next)
  end)
  it("answers a document with all that was given", function()
    local given = {
      id = "s", every = 10, catch_up = false, paused = false,
      job = { name = "a", queue = "q", priority = -1, max_retry = 0, keep_result = false, timeout = 0.5, delay = 1,
        expires_in = 5, retry_base = 0, retry_cap = 1.5, retry_jitter = 0, tags = { "x" }, unique = "u",
        unique_for = 5, if_exists = "latest", max_runtime = 5, track = true },
    }
    local document = schedule(given, "\163yes")
    assert.are.same({ "yes", 0, START_MS + 10000 }, { document.argument, document.made, document.next_ms })
    document.argument, document.made, document.next_ms = nil, nil, nil
    assert.are.same(given, document)
  end)

  describe("after moments that nobody came by for", function()
    it("makes one job, for the first", function()
      schedule()
      jq:pass(1e6 + 5)
      assert.are.same({ 10 }, made())
      assert.are.equal(START_MS + 1e9 + 10000, shown().next_ms)
    end)
    it("makes none when it does not catch up and that is a minute ago", function()
      schedule({ catch_up = false, every = 100 })
      jq:pass(160.001)
      assert.are.same({}, made())
      assert.are.same({ START_MS + 200000, 0 }, { shown().next_ms, shown().made })
      jq:pass(99.999)
      assert.are.same({ 200 }, made())
    end)
    it("makes one for the first within the last minute when it does not catch up", function()
      schedule({ catch_up = false, every = 25 })
      jq:pass(105)
      assert.are.same({ 50 }, made())
      assert.are.equal(START_MS + 125000, shown().next_ms)
    end)
  end)
  it("lets moments pass while it is paused: the next is the first after the pause", function()
    schedule()
    jq:pass(5)
    assert.is_nil(schedule({ paused = true }).next_ms)
    jq:pass(100)
    assert.are.equal(START_MS + 110000, schedule({ paused = false }).next_ms)
    -- By itself it leaves all else as it is.
    local before = schedule({})
    local paused = msgpack.unpack(jq:call("schedule", { id = before.id, paused = true }))
    assert.are.same({ nil, true }, { paused.next_ms, paused.paused })
    local goes_on = msgpack.unpack(jq:call("schedule", { id = before.id, paused = false }))
    before.paused = false
    assert.are.same(before, goes_on)
    jq:pass(5)
    assert.are.same({ 110 }, made())
  end)
  it("lets the moment pass where its unique key is taken", function()
    schedule({ job = { name = "a", unique = "u" } })
    for _ = 1, 2 do
      jq:pass(10)
      jq:tick()
    end
    assert.are.same({ 1, START_MS + 10000, START_MS + 30000 }, { shown().made, shown().last_ms, shown().next_ms })
    jq:succeed(jq:take("a"))
    jq:pass(10)
    assert.are.same({ 30 }, made())
  end)
  it("lets the moment pass where its queue is full", function()
    jq:queue({ name = "a", max_waiting = 1 })
    schedule()
    for _ = 1, 2 do
      jq:pass(10)
      jq:tick()
    end
    assert.are.same({ 1, START_MS + 30000 }, { shown().made, shown().next_ms })
    assert.are.same({ 10 }, made())
  end)
  it("replaced with the same moments, keeps one that passed and was not dealt with; with others it does not", function()
    for _, more in ipairs({ { every = 20 }, { cron = "* * * * *" } }) do
      schedule()
      jq:pass(15)
      assert.is_true(shown().next_ms < jq.now_ms)
      assert.are.equal(shown().next_ms, schedule({ job = { name = "b" } }).next_ms)
      assert.is_true(schedule(more).next_ms > jq.now_ms)
    end
  end)
  it("makes no job twice when the clock is set back", function()
    schedule()
    jq:pass(20)
    assert.are.same({ 10 }, made())
    jq:pass(-15)
    assert.are.same({}, made())
    jq:pass(10)
    assert.are.same({}, made())
    jq:pass(15)
    assert.are.same({ 30 }, made())
  end)
  it("wakes a sleeper when it is due before the sleeper's timer", function()
    jq:sleep("w1", "c", "a", 60000)
    schedule({ every = 20 })
    assert.is_true(jq:is_woken("c"))
    assert.are.equal(20000, jq:sleep("w1", "c", "a", 60000))
    schedule({ id = "u", every = 50 })
    assert.is_false(jq:is_woken("c"))
  end)
  it("goes with all that it has", function()
    jq:set({ trail_max = 0 })
    local before = jq:snapshot()
    schedule()
    assert.are.equal(1, jq:call("unschedule", { id = "s" }))
    assert.are.same({}, space.changes(before, jq:snapshot()))
  end)
  it("whose record somebody deleted by hand is found by audit, and does not stop the clock", function()
    schedule()
    jq:redis("HDEL", jq.name .. ":schedules", "s")
    assert.is_truthy(table.concat(jq:audit()):find("schedule s has no record", 1, true))
    jq:pass(10)
    assert.are.equal(-1, (jq:tick()))
    jq.is_corrupt = true
  end)

  describe("that is run now", function()
    it("makes its job at once, and its moments go on as if there were none", function()
      local before = schedule()
      local id, created = unpack(jq:call("schedule", { id = "s", run = true, actor = "op" }))
      assert.are.equal(1, created)
      local job = jq:take("a")
      assert.are.same({ id, "s", START_MS }, { job.id, job.schedule, job.schedule_ms })
      assert.are.same(before, shown())
      local entry = msgpack.unpack(jq:call("trail", {})[2])
      assert.are.same({ "schedule", "op" }, { entry.what, entry.actor })
    end)
    it("is refused when its queue is full, and when it is not there", function()
      jq:queue({ name = "a", max_waiting = 1 })
      schedule()
      jq:call("schedule", { id = "s", run = true })
      jq:refuses("FULL job.queue: ", "schedule", { id = "s", run = true })
      jq:refuses("NOTFOUND id: no such schedule: x", "schedule", { id = "x", run = true })
    end)
  end)
  it("tells what became of its last jobs, the latest first", function()
    schedule()
    jq:pass(10)
    local done = jq:take("a")
    jq:pass(2)
    jq:succeed(done)
    jq:pass(8)
    jq:tick()
    local waits = jq:call("schedule", { id = "s", run = true })[1]
    local runs = shown({ runs = 20 }).runs
    assert.are.equal(3, #runs)
    assert.are.same({ id = waits, status = "queued" }, runs[1])
    assert.are.same({ id = done.id, status = "done", started_ms = START_MS + 10000, ended_ms = START_MS + 12000 },
      runs[3])
    assert.are.equal(1, #shown({ runs = 1 }).runs)
    jq:call("discard", { ids = { done.id } })
    assert.are.same({ id = done.id }, shown({ runs = 20 }).runs[3])
  end)
  it("is listed in order of id, on shorter pages when many moments are asked for", function()
    for i = 25, 1, -1 do
      schedule({ id = string.format("s%02d", i) })
    end
    local reply = jq:call("schedules", { count = 10 })
    assert.are.same({ "s10", 11 }, { reply[1], #reply })
    assert.are.equal("s11", msgpack.unpack(jq:call("schedules", { cursor = "s10", count = 1 })[2]).id)
    assert.are.equal(21, #jq:call("schedules", { count = 1000, next = 100 }))
    for i = 1, 25 do
      jq:call("schedule", { id = string.format("s%02d", i), cron = "0 0 29 2 */7", job = { name = "a" } }, msgpack.NIL)
    end
    assert.is_true(#jq:call("schedules", { count = 1000, next = 100 }) < 10)
  end)
end)
