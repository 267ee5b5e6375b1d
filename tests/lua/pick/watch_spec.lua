local server = require "support.server"
local space = require "support.space"

describe("watch", function()
  local jq, listener
  before_each(function()
    jq = space.new()
    listener = server.connect()
    listener:call("SSUBSCRIBE", jq.name .. ":ended")
  end)
  after_each(function()
    listener:close()
    jq:close()
  end)

  --- What has been published so far, up to a mark of our own.
  local function heard()
    jq:redis("SPUBLISH", jq.name .. ":ended", "mark")
    local messages = {}
    while true do
      local message = listener:read()[3]
      if message == "mark" then
        return messages
      end
      messages[#messages + 1] = message
    end
  end
  local function watched(spec)
    local id = jq:enqueue(spec or "a")
    jq:call("watch", id)
    return id
  end

  it("answers the states", function()
    local made = jq:enqueue_all("a", { name = "b", delay = 5 })
    assert.are.same({ "queued", "scheduled" }, jq:call("watch", unpack(made)))
  end)
  it("answers nil for unknown jobs, in their place", function()
    local id = jq:enqueue("a")
    local states = jq:call("watch", space.UNKNOWN_ID, id)
    assert.is_nil(states[1])
    assert.are.equal("queued", states[2])
  end)
  it("tells when a job is done", function()
    local id = watched()
    jq:succeed(jq:take("a"))
    assert.are.same({ id .. " done" }, heard())
  end)
  it("tells when a job with a result is done, and only once", function()
    local id = watched({ name = "a", keep_result = true })
    jq:succeed(jq:take("a"))
    jq:pass(3600)
    jq:settle()
    assert.are.same({ id .. " done" }, heard())
  end)
  it("tells when a job failed for good", function()
    local id = watched({ name = "a", max_retry = 0 })
    jq:fail(jq:take("a"))
    assert.are.same({ id .. " error" }, heard())
  end)
  it("stays on over retries", function()
    local id = watched({ name = "a", retry_base = 0 })
    jq:fail(jq:take("a"))
    jq:succeed(jq:take("a"))
    assert.are.same({ id .. " done" }, heard())
  end)
  it("tells of a job whose record is not kept", function()
    jq:set({ done_ttl = 0 })
    local id = watched()
    jq:succeed(jq:take("a"))
    assert.are.same({ id .. " done" }, heard())
  end)
  it("tells nothing of jobs that nobody watches", function()
    jq:enqueue("a")
    jq:succeed(jq:take("a"))
    assert.are.same({}, heard())
  end)
  it("twice tells once", function()
    local id = watched()
    jq:unchanged(function()
      jq:call("watch", id, id)
    end)
    jq:succeed(jq:take("a"))
    assert.are.same({ id .. " done" }, heard())
  end)
  it("of a finished job answers its state and changes nothing", function()
    local id = jq:enqueue("a")
    jq:succeed(jq:take("a"))
    jq:unchanged(function()
      assert.are.same({ "done" }, jq:call("watch", id))
    end)
  end)
end)
