local msgpack = require "support.msgpack"
local schedules = require "support.schedules"
local space = require "support.space"
local specs = require "support.specs"

local START_MS = space.START_MS -- a Tuesday, 2023-11-14 22:13:20
local spec_of = schedules.spec

describe("schedule", function()
  local jq, own
  before_each(function()
    jq = space.new()
    own = schedules.new(jq)
  end)
  after_each(function()
    jq:close()
  end)
  local function current()
    return jq
  end

  local function schedule(more, argument)
    return own:put(more, argument)
  end
  local function shown(id)
    return own:shown(id)
  end
  local function made(queue)
    return own:made(queue)
  end
  local function sweep()
    return jq:tick(1000)
  end

  describe("makes", function()
    it("no job before its moment, and one at it", function()
      schedule()
      jq:pass(9.999)
      assert.are.same({}, made())
      jq:pass(0.001)
      assert.are.same({ 10 }, made())
      assert.are.same({}, made())
    end)
    it("a job for each moment while sweeps come by", function()
      schedule()
      local all = {}
      for _ = 1, 5 do
        jq:pass(10)
        all[#all + 1] = made()[1]
      end
      assert.are.same({ 10, 20, 30, 40, 50 }, all)
    end)
    it("the job as its spec says, with its argument byte for byte", function()
      local argument = "\131\161a\202\63\128\0\0\161b\196\1x\161c\199\1\5y"
      schedule({ job = { name = "mail", queue = "q", priority = -3, max_retry = 2, keep_result = true, timeout = 7.5,
        tags = { "x", "y" }, retry_base = 0.5 } }, argument)
      jq:pass(10)
      local job = jq:take("*")
      assert.are.same({ "mail", "q", -3, 7.5, argument, 1 }, { job.name, job.queue, job.priority, job.timeout, job.blob,
        job.attempt })
      local document = jq:get(job.id)
      assert.are.same({ 2, true, { "x", "y" }, 0.5 }, { document.max_retry, document.keep_result, document.tags,
        document.retry_base })
    end)
    it("jobs that tell the schedule and the moment, to workers and readers", function()
      schedule({ id = "each ten" })
      jq:pass(13)
      local job = jq:take("*")
      assert.are.same({ "each ten", START_MS + 10000 }, { job.schedule, job.schedule_ms })
      local document = jq:get(job.id)
      assert.are.same({ "each ten", START_MS + 10000 }, { document.schedule, document.schedule_ms })
    end)
    it("jobs when picks, assigns and ticks come by", function()
      schedule()
      jq:set({ worker_ttl = 1000 })
      jq:register({ url = "http://w/", queues = "*", max_jobs = 10 })
      jq:pass(10)
      assert.are.equal(1, #jq:pick("a"))
      jq:pass(10)
      assert.are.equal(1, #jq:assign())
      jq:pass(10)
      jq:tick()
      assert.are.same({ queued = 1, running = 2 }, jq:counts("a"))
    end)
    it("one job for a moment, whoever sweeps", function()
      schedule()
      jq:pass(10)
      sweep()
      sweep()
      assert.are.equal(1, #jq:pick({ queues = "*", count = 10, worker = "w1" }))
      assert.are.equal(0, #jq:pick({ queues = "*", count = 10, worker = "w2" }))
      assert.are.equal(10000, (sweep()))
    end)
    it("jobs of many schedules at one moment, in steps", function()
      for i = 1, 30 do
        schedule({ id = "s" .. i, job = { name = "a" .. i } })
      end
      jq:pass(10)
      local next_ms, moved = jq:tick(10)
      assert.are.same({ 0, 10 }, { next_ms, moved })
      jq:tick(10)
      next_ms, moved = jq:tick(10)
      assert.are.same({ 10000, 10 }, { next_ms, moved })
      assert.are.equal(30, #made())
    end)
    it("jobs that wait for their delay, and expire, from when they are made", function()
      schedule({ job = { name = "a", delay = 5, expires_in = 8 } })
      jq:pass(12)
      sweep()
      assert.are.same({ scheduled = 1 }, jq:counts("a"))
      jq:pass(4.999)
      assert.are.same({}, made())
      jq:pass(0.001)
      assert.are.same({ 10 }, made())
    end)
    it("jobs under constraints", function()
      jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
      schedule({ catch_up = "all" }, msgpack.pack({ v = 1 }))
      jq:pass(30)
      assert.are.equal(1, #jq:start("a"))
      assert.are.equal(2, jq:constraint("c").held)
    end)
    it("jobs that are done and forgotten at once, when the namespace keeps none", function()
      jq:set({ done_max = 0 })
      schedule()
      jq:pass(10)
      local job = jq:take("a")
      assert.are.equal("done", jq:succeed(job))
      assert.are.same({ 1, job.id }, { shown().made, shown().last_id })
    end)
  end)

  describe("with every", function()
    it("has its moments at multiples since 1970, not from now", function()
      jq:pass(3)
      assert.are.equal(START_MS + 10000, schedule().next_ms)
    end)
    it("shifts them by offset", function()
      assert.are.equal(START_MS + 3500, schedule({ offset = 3.5 }).next_ms)
      assert.are.equal(START_MS + 10000, schedule({ offset = 10 }).next_ms)
    end)
    it("goes down to tenths of seconds", function()
      assert.are.equal(START_MS + 100, schedule({ every = 0.1 }).next_ms)
      jq:pass(0.1)
      assert.are.same({ 0.1 }, made())
      assert.are.equal(START_MS + 200, shown().next_ms)
    end)
    it("counts in whole milliseconds", function()
      schedule({ every = 16.1, offset = 0.1 })
      assert.are.equal(0, (shown().next_ms - 100) % 16100)
    end)
    it("goes up to thirty years", function()
      assert.are.equal(2e12, schedule({ every = 1e9 }).next_ms)
    end)
  end)

  describe("with cron", function()
    it("has the moments of the expression", function()
      local document = schedule({ cron = "*/15 9-17 * * mon-fri" })
      assert.are.equal("2023-11-15 09:00", os.date("!%Y-%m-%d %H:%M", document.next_ms / 1000))
      assert.are.equal(0, document.next_ms % 60000)
    end)
    it("reads them on a clock ahead of UTC", function()
      assert.are.equal("2023-11-14 23:00",
        os.date("!%Y-%m-%d %H:%M", schedule({ cron = "0 0 * * *", utc_offset = 60 }).next_ms / 1000))
      assert.are.equal("2023-11-15 05:00",
        os.date("!%Y-%m-%d %H:%M", schedule({ cron = "0 0 * * *", utc_offset = -300 }).next_ms / 1000))
    end)
    it("makes a job for each", function()
      schedule({ cron = "* * * * *" })
      jq:pass(40)
      assert.are.same({ 40 }, made())
      jq:pass(60)
      assert.are.same({ 100 }, made())
    end)
    it("waits for a leap day", function()
      schedule({ cron = "0 12 29 2 *" })
      assert.are.equal("2024-02-29 12:00", os.date("!%Y-%m-%d %H:%M", shown().next_ms / 1000))
      jq:set_clock(shown().next_ms)
      assert.are.equal(1, #made())
      assert.are.equal("2028-02-29 12:00", os.date("!%Y-%m-%d %H:%M", shown().next_ms / 1000))
    end)
  end)

  describe("between start and end", function()
    local second = START_MS / 1000
    it("has no moment before start, and may have one at it", function()
      assert.are.equal(START_MS + 50000, schedule({ start = second + 50 }).next_ms)
      assert.are.equal(START_MS + 60000, schedule({ start = second + 50.001 }).next_ms)
      assert.are.equal(START_MS + 160000, schedule({ cron = "* * * * *", start = second + 150 }).next_ms)
    end)
    it("begins after now when start has passed", function()
      assert.are.equal(START_MS + 10000, schedule({ start = 0 }).next_ms)
    end)
    it("has no moment after end, and may have one at it", function()
      schedule({ ["end"] = second + 20 })
      jq:pass(10)
      assert.are.same({ 10 }, made())
      jq:pass(10)
      assert.are.same({ 20 }, made())
      assert.is_nil(shown().next_ms)
      jq:pass(100)
      assert.are.same({}, made())
      assert.is_nil(shown().next_ms)
    end)
    it("makes the last one up that came before the end, also after it", function()
      schedule({ ["end"] = second + 25 })
      jq:pass(1000)
      assert.are.same({ 20 }, made())
      assert.is_nil(shown().next_ms)
    end)
    it("has no moment when the end has passed", function()
      assert.is_nil(schedule({ ["end"] = second - 1 }).next_ms)
      assert.is_nil(schedule({ cron = "@yearly", ["end"] = second + 1 }).next_ms)
    end)
  end)

  describe("limit", function()
    it("ends it after so many jobs", function()
      schedule({ limit = 2 })
      for _ = 1, 4 do
        jq:pass(10)
        sweep()
      end
      assert.are.same({ 10, 20 }, made())
      assert.are.equal(2, shown().made)
      assert.is_nil(shown().next_ms)
    end)
    it("ends a backlog", function()
      schedule({ limit = 3, catch_up = "all" })
      jq:pass(100)
      sweep()
      assert.are.same({ 10, 20, 30 }, made())
      assert.is_nil(shown().next_ms)
    end)
    it("counts only jobs that were made", function()
      schedule({ limit = 2, job = { name = "a", unique = "u" } })
      for _ = 1, 3 do
        jq:pass(10)
        sweep()
      end
      assert.are.equal(1, shown().made)
      jq:succeed(jq:take("a"))
      jq:pass(10)
      sweep()
      assert.are.equal(2, shown().made)
      assert.is_nil(shown().next_ms)
    end)
    it("counts those made before it was set", function()
      schedule()
      jq:pass(10)
      sweep()
      assert.is_nil(schedule({ limit = 1 }).next_ms)
      assert.are.equal(START_MS + 20000, schedule({ limit = 2 }).next_ms)
    end)
  end)

  describe("answers a document", function()
    it("with all that was given", function()
      local given = spec_of({
        offset = 2.5, start = 1.5e9, ["end"] = 9e9, limit = 7, catch_up = "all", backlog = 5, paused = false,
        job = { name = "a", queue = "q", priority = -1, max_retry = 0, keep_result = false, timeout = 0.5, delay = 1,
          expires_in = 5, retry_base = 0, retry_cap = 1.5, retry_jitter = 0, tags = { "x" }, unique = "u",
          unique_for = 5, if_exists = "latest", max_runtime = 5, track = true },
      })
      local document = schedule(given, "\163yes")
      assert.are.same({ "yes", 0, START_MS + 2500 }, { document.argument, document.made, document.next_ms })
      document.argument, document.made, document.next_ms = nil, nil, nil
      assert.are.same(given, document)
    end)
    it("with all that was given of cron", function()
      local document = schedule({ cron = " 5  4 * * Sun ", utc_offset = -90 })
      assert.are.same({ " 5  4 * * Sun ", -90 }, { document.cron, document.utc_offset })
      assert.is_nil(document.every)
    end)
    it("as schedules shows it", function()
      assert.are.same(schedule(), shown())
    end)
    it("with the argument byte for byte", function()
      local argument = "\202\63\128\0\0"
      local bytes = jq:call("schedule", spec_of(), argument)
      assert.is_truthy(bytes:find("\168argument" .. argument, 1, true))
    end)
    it("with the moment and the id of the last job", function()
      schedule()
      jq:pass(10)
      local id = jq:take("a").id
      local document = shown()
      assert.are.same({ 1, START_MS + 10000, id, START_MS + 20000 },
        { document.made, document.last_ms, document.last_id, document.next_ms })
    end)
  end)

  describe("refuses", function()
    local function arguments(field)
      return function(value)
        return { spec_of({ [field] = value }), msgpack.NIL }
      end
    end
    local function refused(field, path, words, cases)
      specs.refused_field(it, current, "schedule", arguments(field), path, words, cases)
    end

    it("a call without both arguments", function()
      jq:refuses("INVALID arguments: expected a spec and an argument, got 0", "schedule")
      jq:refuses("INVALID arguments: expected a spec and an argument, got 1", "schedule", spec_of())
      jq:refuses("INVALID arguments: expected a spec and an argument, got 3", "schedule", spec_of(), msgpack.NIL,
        msgpack.NIL)
    end)
    it("an empty argument", function()
      jq:refuses("INVALID argument: expected one MessagePack value, got no bytes", "schedule", spec_of(), "")
    end)
    it("an unknown field", function()
      jq:refuses("INVALID evry: unknown field, did you mean every?", "schedule", spec_of({ evry = 1 }), msgpack.NIL)
    end)
    it("a spec that is no map", function()
      jq:refuses("INVALID spec: expected one MessagePack map, got 5", "schedule", "\5", msgpack.NIL)
    end)
    it("neither every nor cron, and both", function()
      jq:refuses("INVALID every: expected every or cron, got neither", "schedule", { id = "s", job = { name = "a" } },
        msgpack.NIL)
      jq:refuses("INVALID cron: expected either every or cron, got both", "schedule",
        { id = "s", every = 1, cron = "* * * * *", job = { name = "a" } }, msgpack.NIL)
    end)
    it("fields that belong to the other", function()
      jq:refuses("INVALID utc_offset: only", "schedule", spec_of({ utc_offset = 5 }), msgpack.NIL)
      jq:refuses("INVALID offset: only", "schedule", spec_of({ offset = 5, cron = "* * * * *" }), msgpack.NIL)
    end)
    it("an end before the start", function()
      jq:refuses("INVALID end: expected a moment not before start, got 4", "schedule",
        spec_of({ start = 5, ["end"] = 4 }), msgpack.NIL)
    end)
    it("cron that is not understood, or never comes", function()
      for _, text in ipairs({ "", "* * * *", "60 * * * *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "@never", "x", "\0" }) do
        jq:refuses("INVALID cron: ", "schedule", spec_of({ cron = text }), msgpack.NIL)
      end
      jq:refuses("INVALID cron: such a day never comes", "schedule", spec_of({ cron = "0 0 30 2 *" }), msgpack.NIL)
      jq:refuses("INVALID cron: expected text of at most 1000 bytes, got 5", "schedule", spec_of({ cron = 5 }),
        msgpack.NIL)
    end)
    it("what the job cannot have", function()
      for _, field in ipairs({ "run_at", "depends" }) do
        jq:refuses("INVALID job." .. field .. ": ", "schedule",
          spec_of({ job = { name = "a", [field] = field == "run_at" and 5 or { space.UNKNOWN_ID } } }), msgpack.NIL)
      end
    end)
    it("a wrong job, as enqueue does", function()
      for path, wrong in pairs({
        ["job.name"] = {}, ["job.priority"] = { name = "a", priority = 1.5 }, ["job.nme"] = { nme = "a" },
        ["job.tags[1]"] = { name = "a", tags = { "x", "" } }, ["job.unique_for"] = { name = "a", unique_for = 1 },
        ["job.delay"] = { name = "a", delay = -1 }, ["job.queue"] = { name = "a", queue = "a*" },
      }) do
        jq:refuses("INVALID " .. path .. ": ", "schedule", spec_of({ job = wrong }), msgpack.NIL)
      end
      jq:refuses("INVALID job.name: holds a *", "schedule", spec_of({ job = { name = "a*" } }), msgpack.NIL)
      jq:refuses("INVALID job: expected a map", "schedule", spec_of({ job = "a" }), msgpack.NIL)
      jq:refuses("INVALID job: expected a map", "schedule", { id = "s", every = 5 }, msgpack.NIL)
    end)
    it("a wrong spec without touching the schedule there is", function()
      schedule({ limit = 5 })
      jq:refuses("INVALID limit: ", "schedule", spec_of({ limit = 0 }), msgpack.NIL)
      jq:refuses("INVALID job.name: ", "schedule", spec_of({ job = { name = "" } }), msgpack.NIL)
      assert.are.equal(5, shown().limit)
    end)
    refused("id", "id", { "text of 1 to 255 bytes" }, { { "an empty id", "", '""' }, { "a number as id", 5, "5" },
      { "no id", msgpack.raw(msgpack.NIL), "nothing" } })
    refused("every", "every", { "seconds from 0.1 to 10^9" }, { { "too small every", 0.09, "0.09" },
      { "too large every", 1e9 + 1, "1000000001" }, { "NaN as every", msgpack.NAN, "" },
      { "text as every", "5", '"5"' } })
    refused("offset", "offset", { "from 0 to every" }, { { "a negative offset", -1, "-1" },
      { "an offset of more than every", 10.1, "10.1" } })
    for _, field in ipairs({ "start", "end" }) do
      refused(field, field, { "Unix seconds from 0 to 10^10" }, { { "a negative " .. field, -1, "-1" },
        { "a " .. field .. " in milliseconds", 1.7e12, "1700000000000" }, { "text as " .. field, "now", '"now"' } })
    end
    refused("limit", "limit", { "an integer from 1 to 10^9" }, { { "limit 0", 0, "0" }, { "limit 1.5", 1.5, "1.5" } })
    refused("catch_up", "catch_up", { "one, all or none" }, { { "unknown catch_up", "two", '"two"' },
      { "true as catch_up", true, "true" } })
    refused("backlog", "backlog", { "an integer from 1 to 1000" }, { { "backlog 0", 0, "0" },
      { "backlog 1001", 1001, "1001" } })
    refused("paused", "paused", { "true or false" }, { { "1 as paused", 1, "1" } })
    specs.refused_field(it, current, "schedule", function(value)
      return { spec_of({ cron = "* * * * *", utc_offset = value }), msgpack.NIL }
    end, "utc_offset", { "whole minutes from -1440 to 1440" }, { { "utc_offset 1441", 1441, "1441" },
      { "utc_offset 0.5", 0.5, "0.5" }, { "a zone's name as utc_offset", "CET", '"CET"' } })
    specs.namespace(it, current, "schedule", { spec_of(), msgpack.NIL })
  end)

  describe("audit finds", function()
    local function problems()
      local found = table.concat(jq:audit(), "\n")
      jq.is_corrupt = true
      return found
    end
    it("a schedule that nobody looks at", function()
      schedule()
      jq:redis("ZREM", jq.name .. ":due", "cs")
      assert.is_truthy(problems():find("schedule s is due at", 1, true))
    end)
    it("a schedule that is looked at too late", function()
      schedule()
      jq:redis("ZADD", jq.name .. ":due", START_MS + 10001, "cs")
      assert.is_truthy(problems():find("is noted as due at 1700000010001", 1, true))
    end)
    it("an id without record, and a record without id", function()
      schedule()
      schedule({ id = "t" })
      jq:redis("HDEL", jq.name .. ":schedules", "s")
      assert.is_truthy(problems():find("schedule s has no record", 1, true))
      jq:redis("DEL", jq.name .. ":schedule-ids")
      assert.is_truthy(problems():find("there are 1 schedules and 0 ids of schedules", 1, true))
    end)
  end)
  it("whose record somebody deleted by hand does not stop the clock", function()
    schedule()
    jq:redis("HDEL", jq.name .. ":schedules", "s")
    jq:pass(10)
    sweep()
    assert.are.equal(-1, (jq:tick()))
    jq.is_corrupt = true
  end)
end)
