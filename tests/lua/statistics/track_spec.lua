local listening = require "support.listener"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("track", function()
  local jq, listeners
  before_each(function()
    jq = space.new()
    listeners = {}
  end)
  after_each(function()
    for _, listener in pairs(listeners) do
      listener:close()
    end
    jq:close()
  end)

  local function heard(id)
    listeners[id] = listeners[id] or listening.new(jq, jq.name .. ":job:" .. id)
    local states = {}
    for i, message in ipairs(listeners[id]:heard()) do
      local event = msgpack.unpack(message)
      assert.are.equal(id, event.id)
      states[i] = (event.from or event.event) .. ">" .. event.state
    end
    return states
  end

  it("has each transition of a job published", function()
    local id = jq:enqueue("a")
    assert.are.same({ "queued" }, jq:call("track", { ids = { id } }))
    heard(id)
    jq:succeed(jq:take("a"))
    assert.are.same({ "queued>running", "running>done" }, heard(id))
  end)
  it("is a field of enqueue as well", function()
    local id = jq:enqueue({ name = "a", track = true })
    heard(id)
    jq:fail(jq:take("a"))
    assert.are.same({ "queued>running", "running>retrying" }, heard(id))
    assert.is_true(jq:get(id).track)
  end)
  it("tells beside the stream of events", function()
    jq:set({ events_max = 10 })
    local id = jq:enqueue({ name = "a", track = true })
    heard(id)
    jq:cancel(id)
    assert.are.same({ "queued>cancelled" }, heard(id))
    assert.are.equal(2, jq:redis("XLEN", jq.name .. ":events"))
  end)
  it("ends when it is taken off", function()
    local id = jq:enqueue({ name = "a", track = true })
    jq:call("track", { ids = { id }, on = false })
    heard(id)
    jq:succeed(jq:take("a"))
    assert.are.same({}, heard(id))
    assert.is_nil(jq:get(id).track)
  end)
  it("leaves a job as it was when it is put on and taken off", function()
    local id = jq:enqueue({ name = "a", tags = { "track" }, retry_base = 3 })
    jq:unchanged(function()
      jq:call("track", { ids = { id } })
      jq:call("track", { ids = { id }, on = false })
    end)
  end)
  describe("tells besides", function()
    local function told(id)
      local events = {}
      for i, message in ipairs(listeners[id]:heard()) do
        local event = msgpack.unpack(message)
        assert.is_nil(event.from)
        events[i] = { event.event, event.state, event.queue, event.attempt, event.progress, event.message }
      end
      return events
    end

    local function beat(job, notes)
      return jq:call("heartbeat", { worker = "worker", jobs = { { job.id, job.token, notes } } })[1]
    end

    it("the progress of a job that runs", function()
      local id = jq:enqueue({ name = "a", track = true })
      local job = jq:take("a")
      heard(id)
      beat(job, { progress = 0.5 })
      beat(job, { message = "half way" })
      beat(job)
      assert.are.same({ { "progress", "running", "a", 1, 0.5 }, { "progress", "running", "a", 1, 0.5, "half way" } },
        told(id))
    end)
    it("no progress of a lost attempt, and of jobs that are not followed", function()
      jq:set({ events_max = 10 })
      local id, other = jq:enqueue({ name = "a", track = true }), jq:enqueue("a")
      local jobs = jq:pick({ queues = "a", count = 2 })
      jq:release(jobs[1])
      heard(id)
      heard(other)
      local count = jq:redis("XLEN", jq.name .. ":events")
      assert.are.equal("LOST", beat(jobs[1], { progress = 1 }))
      beat(jobs[2], { progress = 1 })
      assert.are.same({ {}, {} }, { told(id), told(other) })
      assert.are.equal(count, jq:redis("XLEN", jq.name .. ":events"))
    end)
    it("that it met another with its unique key", function()
      local id = jq:enqueue({ name = "a", unique = "k", track = true })
      heard(id)
      jq:enqueue({ name = "a", unique = "k" })
      jq:enqueue({ name = "a", unique = "k", if_exists = "replace" })
      jq:take("a")
      heard(id)
      jq:enqueue({ name = "a", unique = "k", if_exists = "replace" })
      local next_id = jq:enqueue({ name = "a", unique = "k", if_exists = "latest" })
      assert.are_not.equal(id, next_id)
      assert.are.same({ { "met", "running", "a", 1 } }, told(id))
    end)
    it("to the stream as well", function()
      jq:set({ events_max = 10 })
      local id = jq:enqueue({ name = "a", unique = "k" })
      jq:enqueue({ name = "a", unique = "k" })
      local entries = jq:redis("XRANGE", jq.name .. ":events", "-", "+")
      local event = msgpack.unpack(entries[2][2][2])
      assert.are.same({ 2, id, "met", "queued" }, { #entries, event.id, event.event, event.state })
    end)
    it("nothing of a job whose record is gone", function()
      jq:set({ events_max = 10, done_max = 0 })
      local id = jq:enqueue({ name = "a", unique = "k", unique_for = 60 })
      jq:succeed(jq:take("a"))
      assert.are.equal(id, jq:enqueue({ name = "a", unique = "k" }))
      assert.are.equal(3, jq:redis("XLEN", jq.name .. ":events"))
    end)
    it("that it was taken to another queue", function()
      local id = jq:enqueue({ name = "a", track = true })
      heard(id)
      jq:call("change", { id = id, queue = "b", delay = 5 }, "")
      local events = {}
      for i, message in ipairs(listeners[id]:heard()) do
        local event = msgpack.unpack(message)
        events[i] = { event.event or event.from, event.state, event.queue }
      end
      assert.are.same({ { "moved", "queued", "b" }, { "queued", "scheduled", "b" } }, events)
    end)
  end)
  it("answers the states, nil for what is unknown", function()
    local id = jq:enqueue({ name = "a", delay = 5 })
    local states = jq:call("track", { ids = { space.UNKNOWN_ID, id } })
    assert.is_nil(states[1])
    assert.are.equal("scheduled", states[2])
  end)
end)
