local msgpack = require "support.msgpack"
local space = require "support.space"

describe("queues", function()
  local jq = space.each()

  local function names(spec)
    local reply = jq:call("queues", spec or {})
    local found = {}
    for i = 2, #reply do
      found[i - 1] = msgpack.unpack(reply[i]).name
    end
    return found, reply[1]
  end

  it("lists queues in order of name", function()
    jq:enqueue_all("b", "c", "a")
    local found, cursor = names()
    assert.are.same({ "a", "b", "c" }, found)
    assert.are.equal("", cursor)
  end)
  it("gives pages that together hold each queue once", function()
    for i = 1, 25 do
      jq:enqueue(string.format("q%02d", i))
    end
    local all, cursor = {}, ""
    repeat
      local page
      page, cursor = names({ cursor = cursor, count = 10 })
      for _, name in ipairs(page) do
        all[#all + 1] = name
      end
    until cursor == ""
    assert.are.equal(25, #all)
    assert.are.same({ "q01", "q25" }, { all[1], all[25] })
  end)
  it("goes on behind a queue that came meanwhile", function()
    jq:enqueue_all("a", "c")
    local _, cursor = names({ count = 1 })
    jq:enqueue("b")
    assert.are.same({ "b", "c" }, (names({ cursor = cursor })))
  end)
  it("shows those that are named, in that order, unknown ones left out", function()
    jq:enqueue_all("a", "b")
    local found, cursor = names({ names = { "b", "nobody", "a" } })
    assert.are.same({ "b", "a" }, found)
    assert.are.equal("", cursor)
  end)
  it("shows what queue shows", function()
    jq:enqueue("a")
    jq:queue({ name = "a", paused = true, max_waiting = 3 })
    assert.are.same(jq:queue("a"), msgpack.unpack(jq:call("queues", {})[2]))
  end)
  it("changes nothing", function()
    jq:enqueue("a")
    jq:unchanged(function()
      names({ names = { "a", "nobody" } })
    end)
  end)
end)
