local listening = require "support.listener"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("events", function()
  local jq, listener
  before_each(function()
    jq = space.new()
    jq:set({ events_max = 1000 })
    listener = listening.new(jq, jq.name .. ":events")
  end)
  after_each(function()
    listener:close()
    jq:close()
  end)

  local function stream()
    local found = {}
    for i, entry in ipairs(jq:redis("XRANGE", jq.name .. ":events", "-", "+")) do
      assert.are.equal("e", entry[2][1])
      found[i] = msgpack.unpack(entry[2][2])
    end
    return found
  end
  --- What happened since the last look, as "from>state"; both ways of telling it agree.
  local function changes()
    local shown, heard = {}, listener:heard()
    for i, event in ipairs(stream()) do
      assert.are.same(event, msgpack.unpack(heard[i]))
      shown[i] = (event.from or "") .. ">" .. event.state
    end
    assert.are.equal(#shown, #heard)
    jq:redis("DEL", jq.name .. ":events")
    return shown
  end

  it("say nothing of what clients cannot see", function()
    jq:enqueue({ name = "a", keep_result = true })
    jq:succeed(jq:take("a"))
    changes()
    jq:pass(4000)
    jq:settle()
    assert.are.same({}, changes())
  end)
  it("tell of the end of jobs that leave no record", function()
    jq:set({ done_max = 0 })
    jq:enqueue("a")
    jq:succeed(jq:take("a"))
    assert.are.same({ ">queued", "queued>running", "running>done" }, changes())
  end)
  it("that are too many go, the oldest first", function()
    jq:set({ events_max = 100 })
    jq:enqueue_many({ name = "a" }, 1000)
    local left = #stream()
    assert.is_true(left >= 100 and left <= 300, "there are " .. left)
  end)
  it("that were kept go when none are asked for any more", function()
    jq:enqueue("a")
    jq:set({ events_max = 0 })
    assert.are.equal(0, jq:redis("EXISTS", jq.name .. ":events"))
  end)
end)
