-- Request tokens of enqueue: a call that is sent twice counts once.
local msgpack = require "support.msgpack"
local space = require "support.space"

local NIL = msgpack.NIL

describe("enqueue", function()
  local jq = space.each()

  describe("request", function()
    it("is remembered for request_ttl", function()
      local function enqueue()
        return jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)[1]
      end
      local first = enqueue()
      jq:pass(599.999)
      assert.are.equal(first, enqueue())
      jq:pass(0.001)
      assert.are_not.equal(first, enqueue())
    end)
  end)
end)
