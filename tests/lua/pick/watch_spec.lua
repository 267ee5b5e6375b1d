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
  it("tells of a job whose record is not kept", function()
    jq:set({ done_ttl = 0 })
    local id = watched()
    jq:succeed(jq:take("a"))
    assert.are.same({ id .. " done" }, heard())
  end)
  it("twice tells once", function()
    local id = watched()
    jq:unchanged(function()
      jq:call("watch", id, id)
    end)
    jq:succeed(jq:take("a"))
    assert.are.same({ id .. " done" }, heard())
  end)
end)
