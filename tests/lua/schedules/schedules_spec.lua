-- The scripts unschedule and schedules.
local msgpack = require "support.msgpack"
local schedules = require "support.schedules"
local space = require "support.space"

local START_MS = space.START_MS

---@return table document
local function schedule(jq, id, more)
  more = more or {}
  more.id = id
  return (schedules.of(jq))(more)
end

describe("unschedule", function()
  local jq = space.each()

  it("ends a schedule and forgets it", function()
    jq:set({ trail_max = 0 })
    local before = jq:snapshot()
    schedule(jq, "s")
    assert.are.equal(1, jq:call("unschedule", { id = "s" }))
    assert.are.same({}, space.changes(before, jq:snapshot()))
    jq:pass(100)
    assert.are.same({}, jq:pick_ids("a"))
    assert.are.same({ "" }, jq:call("schedules", {}))
  end)
end)

describe("a schedule that is run now", function()
  local jq = space.each()

  it("makes its job at once, and its moments go on as if there were none", function()
    local before = schedule(jq, "s", { limit = 1 })
    local id, created = unpack(jq:call("schedule", { id = "s", run = true, actor = "op" }))
    assert.are.equal(1, created)
    local job = jq:take("a")
    assert.are.same({ id, "s", START_MS }, { job.id, job.schedule, job.schedule_ms })
    local after = msgpack.unpack(jq:call("schedules", { ids = { "s" } })[2])
    assert.are.same(before, after)
    jq:pass(10)
    assert.are.equal("s", jq:take("a").schedule)
    assert.are.equal("schedule", msgpack.unpack(jq:call("trail", {})[2]).what)
    assert.are.equal("op", msgpack.unpack(jq:call("trail", {})[2]).actor)
  end)
  it("is refused when its queue is full, and when it is not there", function()
    jq:call("queue", { name = "a", max_waiting = 1 })
    schedule(jq, "s")
    jq:call("schedule", { id = "s", run = true })
    jq:refuses("FULL job.queue: ", "schedule", { id = "s", run = true })
    jq:refuses("NOTFOUND id: no such schedule: x", "schedule", { id = "x", run = true })
  end)
end)

describe("the last jobs of a schedule", function()
  local jq = space.each()

  local function runs(count)
    return msgpack.unpack(jq:call("schedules", { ids = { "s" }, runs = count })[2]).runs
  end

  it("are told with what became of them, the latest first", function()
    schedule(jq, "s")
    jq:pass(10)
    local done = jq:take("a")
    jq:pass(2)
    jq:succeed(done)
    jq:pass(8)
    jq:tick()
    local waits = jq:call("schedule", { id = "s", run = true })[1]
    local shown = runs(20)
    assert.are.equal(3, #shown)
    assert.are.same({ id = waits, status = "queued" }, shown[1])
    assert.are.same({ id = done.id, status = "done", started_ms = START_MS + 10000, ended_ms = START_MS + 12000 },
      shown[3])
    assert.are.equal(1, #runs(1))
    jq:call("discard", { ids = { done.id } })
    assert.are.same({ id = done.id }, runs(20)[3])
  end)
end)

describe("schedules", function()
  local jq = space.each()

  local function ids_of(spec)
    local reply = jq:call("schedules", spec or {})
    local ids = {}
    for i = 2, #reply do
      ids[i - 1] = msgpack.unpack(reply[i]).id
    end
    return ids, reply[1]
  end

  --- The next moments in seconds from the start.
  local function next_of(id, n)
    local list = msgpack.unpack(jq:call("schedules", { ids = { id }, next = n })[2]).next
    for i, moment in ipairs(list or {}) do
      list[i] = (moment - START_MS) / 1000
    end
    return list
  end

  it("lists schedules in order of id, a page after the other", function()
    local expected = {}
    for i = 25, 1, -1 do
      expected[i] = string.format("s%02d", i)
      schedule(jq, expected[i])
    end
    assert.are.same(expected, (ids_of()))
    local all, cursor = {}, nil
    repeat
      local page
      page, cursor = ids_of({ cursor = cursor, count = 10 })
      for _, id in ipairs(page) do
        all[#all + 1] = id
      end
    until cursor == ""
    assert.are.same(expected, all)
  end)
  it("names the next moments", function()
    schedule(jq, "s", { offset = 3 })
    assert.are.same({ 3, 13, 23 }, next_of("s", 3))
    schedule(jq, "s", { cron = "*/2 * * * *" })
    assert.are.same({ 40, 160, 280 }, next_of("s", 3))
    assert.are.equal(100, #next_of("s", 100))
  end)
  it("gives shorter pages when many moments are asked for", function()
    for i = 1, 45 do
      schedule(jq, string.format("s%02d", i))
    end
    local first, cursor = ids_of({ count = 1000, next = 100 })
    assert.are.same({ 20, "s20" }, { #first, cursor })
    assert.are.equal(45, #ids_of({ count = 1000, next = 10 }))
    local named = {}
    for i = 1, 21 do
      named[i] = "s01"
    end
    jq:refuses("INVALID ids: expected at most 20 with so much of each, got 21", "schedules",
      { ids = named, next = 100 })
  end)
end)
