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
end)
