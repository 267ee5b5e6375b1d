-- For how long statistics are kept, and what is removed when.
local counted_in = require "support.counted"
local keys = require "support.keys"
local msgpack = require "support.msgpack"
local space = require "support.space"

local DAY_MS = 86400000
local START_MS = space.START_MS - space.START_MS % DAY_MS + DAY_MS

describe("stats", function()
  local jq = space.each()
  before_each(function()
    jq:set_clock(START_MS)
  end)

  local stats = counted_in(jq)
  local documents, counts, fold = stats.documents, stats.counts, stats.fold

  it("keeps minutes for 3 hours, hours for 8 days, days for 400", function()
    local function number(by)
      return #documents({ by = by, queue = "a" })
    end
    for _ = 1, 200 do
      jq:enqueue("a")
      jq:pass(60)
    end
    fold()
    jq:pass(-60)
    assert.are.equal(180, number("minute"))
    jq:set_clock(START_MS + 8 * DAY_MS - 1)
    assert.are.same({ 0, 4, 1 }, { number("minute"), number("hour"), number("day") })
    jq:pass(3600)
    jq:enqueue("a")
    assert.are.same({ 1, 4, 2 }, { number("minute"), number("hour"), number("day") })
    jq:set_clock(START_MS + 400 * DAY_MS - 1)
    assert.are.same({ 0, 0, 2 }, { number("minute"), number("hour"), number("day") })
    jq:set_clock(START_MS + 400 * DAY_MS)
    assert.are.equal(1, number("day"))
  end)
  it("removes what is not kept any longer, while there is work #once", function()
    for _ = 1, 20 do
      for _ = 1, 12 do
        jq:enqueue("a")
        jq:pass(60 * 7)
      end
      fold()
    end
    local fields = jq:redis("HKEYS", keys(jq.name).STATS .. "a\0")
    local minutes = 0
    for _, field in ipairs(fields) do
      minutes = minutes + (field:sub(1, 1) == "m" and 1 or 0)
    end
    assert.is_true(minutes < 180, minutes)
    assert.is_true(jq:redis("TTL", keys(jq.name).STATS .. "a\0") > 400 * 86400)
  end)
  it("forgets pairs that have expired #once", function()
    jq:enqueue_all("a", "b", "c")
    fold()
    jq:redis("DEL", keys(jq.name).STATS .. "b\0")
    jq:pass(3600)
    jq:enqueue("a")
    fold()
    assert.is_nil(jq:redis("ZSCORE", keys(jq.name).STATS_PAIRS, "b\0"))
    assert.is_truthy(jq:redis("ZSCORE", keys(jq.name).STATS_PAIRS, "c\0"))
  end)
  it("loses nothing when the clock is set back", function()
    jq:enqueue_all("a", "a")
    local job = jq:take("a")
    jq:pass(-7200)
    jq:succeed(job)
    jq:enqueue("a")
    fold()
    jq:succeed(jq:take("a"))
    local sums = {}
    for _, document in ipairs(documents({ queue = "a" })) do
      for kind, count in pairs(counts(document)) do
        sums[kind] = (sums[kind] or 0) + count
      end
      assert.is_true(document.run.min >= 0 and document.wait.min >= 0)
    end
    assert.are.same({ enqueued = 3, done = 2 }, sums)
  end)
  it("lists each pair of queue and name once, whatever the server's locale, also those in the log alone", function()
    local names = { "a", "B", "A", "b", "a-b", "a b", "ab", "_", "\195\188", "z" }
    for i, name in ipairs(names) do
      jq:enqueue(name)
      if i == 5 then
        fold()
      end
    end
    local listed, cursor = {}, ""
    repeat
      local reply = jq:call("stats", { by = "hour", series = true, count = 1, cursor = cursor })
      for i = 2, #reply do
        listed[#listed + 1] = msgpack.unpack(reply[i]).queue
      end
      cursor = reply[1]
    until cursor == ""
    assert.are.same({ "A", "B", "_", "a", "a b", "a-b", "ab", "b", "filler", "other filler", "z", "\195\188" },
      listed)
  end)
  it("folds a log of many queues step by step, and loses nothing", function()
    local names = {}
    for i = 1, 100 do
      names[i] = "q" .. i
    end
    for _ = 1, 9 do
      jq:enqueue_all(unpack(names))
    end
    assert.is_true(stats.log_size() > 10000 and stats.log_size() < 17000, stats.log_size())
    stats.counted({ enqueued = 900 })
    stats.counted({ enqueued = 9 }, { queue = "q1" })
    stats.counted({ enqueued = 9 }, { queue = "q100" })
  end)
  it("counts each job once where a call makes more of them after it folded the log", function()
    jq:call("schedule", { id = "s", every = 10, job = { name = "s" } }, msgpack.NIL)
    jq:enqueue("a")
    local job, log = jq:take("a"), keys(jq.name).LOG
    jq:succeed(job)
    jq:enqueue("a")
    job = jq:take("a")
    jq:redis("SET", log, string.rep(jq:redis("GET", log), 1000))
    jq:pass(10)
    jq:call("finish", { worker = "worker", pick = { queues = "s" } },
      { id = job.id, token = job.token, type = "success", enqueue = 1 }, msgpack.NIL, { name = "b" }, msgpack.NIL)
    assert.is_true(stats.log_size() < 1000)
    stats.counted({ enqueued = 1 }, { queue = "b" })
    stats.counted({ enqueued = 2, done = 1001 }, { queue = "a" })
  end)
end)
