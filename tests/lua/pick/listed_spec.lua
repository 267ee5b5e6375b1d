-- Workers that are listed without being registered: those that announce themselves, and those that died.
local msgpack = require "support.msgpack"
local space = require "support.space"

local START_MS = space.START_MS
local ABOUT = { host = "h1", pid = 77, version = "1.2", knows = { "a", "b" } }

describe("listed workers", function()
  local jq = space.each()

  local function with(fields)
    local spec = { queues = { "a" } }
    for _, more in ipairs({ ABOUT, fields }) do
      for name, value in pairs(more) do
        spec[name] = value
      end
    end
    return spec
  end
  local function announce(fields)
    fields = fields or {}
    fields.name, fields.announce = fields.name or "mail-1", true
    return jq:call("register", with(fields))
  end
  local function listed(spec)
    local reply, found = jq:call("workers", spec or {}), {}
    for i = 2, #reply do
      found[i - 1] = msgpack.unpack(reply[i])
    end
    return found, reply[1]
  end

  it("are those that announce themselves, with what they say", function()
    assert.are.equal("mail-1", announce({ max_jobs = 8 }))
    assert.are.same({ {
      id = "mail-1", name = "mail-1", queues = { "a" }, max_jobs = 8, held = 0, running = {}, seen_ms = START_MS,
      since_ms = START_MS, refused = {}, lapsed = 0, request = "", host = "h1", pid = 77, version = "1.2",
      knows = { "a", "b" }, state = "pulling",
    } }, listed())
    assert.are.same(listed(), listed({ ids = { "mail-1", "unknown" } }))
  end)
  it("run what they said, as long as they do", function()
    jq:enqueue_many({ name = "a" }, 3)
    local jobs = jq:pick({ queues = "a", count = 2, worker = "mail-1" })
    local another = jq:pick({ queues = "a", worker = "mail-2" })[1]
    jq:pass(1)
    announce({ running = { jobs[1].id, jobs[2].id, another.id } })
    local one = listed()[1]
    assert.are.same({ { jobs[1].id, START_MS }, { jobs[2].id, START_MS } }, one.running)
    assert.are.equal(2, one.held)
    jq:cancel(jobs[1].id)
    assert.are.same({ { jobs[2].id, START_MS } }, listed()[1].running)
  end)
  it("are gone when they are silent, forgotten after an hour, and begin anew", function()
    announce()
    jq:pass(60)
    announce()
    assert.are.same({ START_MS, START_MS + 60000 }, { listed()[1].since_ms, listed()[1].seen_ms })
    jq:pass(180)
    assert.are.equal("gone", listed()[1].state)
    jq:pass(3420)
    assert.are.equal(1, #listed())
    jq:pass(0.001)
    assert.are.same({}, listed())
    announce({ name = "mail-2" })
    assert.are.same({ "mail-2" }, jq:redis("HKEYS", jq.name .. ":listed"))
    announce()
    assert.are.equal("pulling", listed()[1].state)
    assert.are.equal(listed()[1].seen_ms, listed()[1].since_ms)
  end)
  it("are a thousand at most: who was silent for longest goes #once", function()
    for i = 1, 1001 do
      announce({ name = "w" .. i })
      jq:pass(0.001)
    end
    local found, cursor = {}, ""
    repeat
      local page
      page, cursor = listed({ cursor = cursor, count = 1000 })
      for _, one in ipairs(page) do
        found[one.name] = true
      end
    until cursor == ""
    assert.is_nil(found.w1)
    assert.is_true(found.w2 and found.w1001)
  end)
  it("are registered ones that died, with what they lost", function()
    jq:enqueue_many({ name = "a" }, 2)
    local id = jq:register(with({ name = "pushed", url = "http://w/" }))
    assert.are.same({ "h1", 77, "1.2", { "a", "b" } }, (function()
      local one = listed({ ids = { id } })[1]
      return { one.host, one.pid, one.version, one.knows }
    end)())
    local jobs = jq:pick({ queues = "a", count = 2, worker = id })
    jq:pass(30)
    jq:tick()
    local one = listed({ ids = { id } })[1]
    assert.are.same({ "gone", "pushed", START_MS, 2, jq.ids(jobs), 77, 0 },
      { one.state, one.name, one.seen_ms, one.lapsed, one.lost, one.pid, one.held })
  end)
end)
