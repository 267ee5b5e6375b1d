local schedules = require "support.schedules"
local space = require "support.space"

local START_MS = space.START_MS -- a Tuesday, 2023-11-14 22:13:20
local spec_of = schedules.spec

describe("schedule", function()
  local jq = space.each()
  local schedule, shown, made, sweep = schedules.of(jq)

  describe("makes", function()
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
  end)

  describe("with every", function()
    it("has its moments at multiples since 1970, not from now", function()
      jq:pass(3)
      assert.are.equal(START_MS + 10000, schedule().next_ms)
    end)
  end)

  describe("with cron", function()
    it("has the moments of the expression", function()
      local document = schedule({ cron = "*/15 9-17 * * mon-fri" })
      assert.are.equal("2023-11-15 09:00", os.date("!%Y-%m-%d %H:%M", document.next_ms / 1000))
      assert.are.equal(0, document.next_ms % 60000)
    end)
  end)

  describe("between start and end", function()
    local second = START_MS / 1000
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
      assert.is_truthy(problems():find("schedule s is noted as due at inf", 1, true))
    end)
    it("an id without record, and a record without id", function()
      schedule()
      schedule({ id = "t" })
      jq:redis("HDEL", jq.name .. ":schedules", "s")
      assert.is_truthy(problems():find("schedule s has no record", 1, true))
      jq:redis("DEL", jq.name .. ":schedule-ids")
      assert.is_truthy(problems():find("there are 1 schedules and 0 ids of them", 1, true))
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
