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
  end)
end)
