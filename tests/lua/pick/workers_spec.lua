local msgpack = require "support.msgpack"
local space = require "support.space"

describe("workers", function()
  local jq = space.each()

  local function ids(spec)
    local reply = jq:call("workers", spec or {})
    local found = {}
    for i = 2, #reply do
      local worker = msgpack.unpack(reply[i])
      found[#found + 1] = worker.state ~= "gone" and worker.id or nil
    end
    return found, reply[1]
  end
  it("gives pages that together hold each worker once", function()
    local made = {}
    for i = 1, 25 do
      made[i] = jq:register({})
    end
    local all, cursor = {}, ""
    repeat
      local page
      page, cursor = ids({ cursor = cursor, count = 10 })
      for _, id in ipairs(page) do
        all[#all + 1] = id
      end
    until cursor == ""
    assert.are.same(made, all)
  end)

  it("drops each when it was silent for worker_ttl, however lively the others are", function()
    jq:register({})
    jq:pass(20)
    local lively = jq:register({})
    jq:pass(10.001)
    jq:pick({ worker = lively, queues = "a" })
    jq:tick()
    assert.are.same({ lively }, (ids()))
  end)
  it("leave nothing behind when they unregister", function()
    jq:call("unregister", { worker = jq:register({ url = "http://w/", queues = "b" }) })
    jq:pass(30)
    jq:settle()
    local before = jq:keys()
    jq:call("unregister", { worker = jq:register({ url = "http://w/", queues = "a" }) })
    jq:pass(30)
    jq:settle()
    assert.are.same(before, jq:keys())
  end)
end)
