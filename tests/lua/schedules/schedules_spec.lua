-- The scripts unschedule and schedules.
local msgpack = require "support.msgpack"
local schedules = require "support.schedules"
local space = require "support.space"

local START_MS = space.START_MS

---@return table document
local function schedule(jq, id, more)
  more = more or {}
  more.id = id
  return schedules.new(jq):put(more)
end

describe("unschedule", function()
  local jq = space.each()

  it("ends a schedule and forgets it", function()
    local before = jq:snapshot()
    schedule(jq, "s")
    assert.are.equal(1, jq:call("unschedule", { id = "s" }))
    assert.are.same({ "changed: " .. jq.name .. ":meta" }, space.changes(before, jq:snapshot()))
    jq:pass(100)
    assert.are.same({}, jq:pick_ids("a"))
    assert.are.same({ "" }, jq:call("schedules", {}))
  end)
  it("leaves the jobs it has made, and other schedules", function()
    schedule(jq, "s")
    schedule(jq, "t", { every = 1000 })
    jq:pass(10)
    jq:tick()
    jq:call("unschedule", { id = "s" })
    assert.are.equal(1, #jq:pick("a"))
    jq:set_clock(START_MS + 1000000)
    assert.are.equal("t", jq:take("a").schedule)
  end)
  it("of a schedule that comes again lets it begin anew", function()
    schedule(jq, "s")
    jq:pass(10)
    jq:tick()
    jq:call("unschedule", { id = "s" })
    local document = schedule(jq, "s")
    assert.are.same({ 0, START_MS + 20000 }, { document.made, document.next_ms })
    assert.is_nil(document.last_id)
  end)
  it("answers NOTFOUND for one that is not there, also the second time", function()
    jq:refuses("NOTFOUND id: no such schedule: x", "unschedule", { id = "x" })
    schedule(jq, "s")
    jq:call("unschedule", { id = "s" })
    jq:refuses("NOTFOUND id: ", "unschedule", { id = "s" })
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

  it("is empty in the beginning", function()
    assert.are.same({ "" }, jq:call("schedules", {}))
  end)
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
  it("shows those that are named, in that order, unknown ones left out", function()
    schedule(jq, "a")
    schedule(jq, "b")
    assert.are.same({ "b", "a" }, (ids_of({ ids = { "b", "nobody", "a" } })))
  end)
  it("names no moments unless it is asked", function()
    schedule(jq, "s")
    assert.is_nil(next_of("s", nil))
    assert.is_nil(next_of("s", 0))
  end)
  it("names the next moments", function()
    schedule(jq, "s", { offset = 3 })
    assert.are.same({ 3, 13, 23 }, next_of("s", 3))
    schedule(jq, "s", { cron = "*/2 * * * *" })
    assert.are.same({ 40, 160, 280 }, next_of("s", 3))
    assert.are.equal(100, #next_of("s", 100))
  end)
  it("names no moments after the end, or beyond the limit, or of a pause", function()
    schedule(jq, "s", { ["end"] = START_MS / 1000 + 25 })
    assert.are.same({ 10, 20 }, next_of("s", 5))
    schedule(jq, "s", { limit = 3 })
    jq:pass(10)
    jq:tick()
    assert.are.same({ 20, 30 }, next_of("s", 5))
    schedule(jq, "s", { paused = true })
    assert.are.same({}, next_of("s", 5))
  end)
  it("names moments to come, also before those that passed are dealt with", function()
    schedule(jq, "s")
    jq:pass(1e6 + 5)
    assert.are.same({ 1e6 + 10, 1e6 + 20 }, next_of("s", 2))
  end)
  it("names moments that were not dealt with, also after the clock was set back", function()
    schedule(jq, "s")
    jq:pass(20)
    jq:tick()
    jq:pass(-15)
    assert.are.same({ 30, 40 }, next_of("s", 2))
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
    jq:refuses("INVALID ids: expected a list of 1 to 20 ids (with next 100), got a list", "schedules",
      { ids = named, next = 100 })
  end)
  it("changes nothing", function()
    schedule(jq, "s")
    jq:pass(100)
    jq:unchanged(function()
      ids_of({ next = 5 })
      ids_of({ ids = { "s", "nobody" }, next = 5 })
    end)
  end)
end)
