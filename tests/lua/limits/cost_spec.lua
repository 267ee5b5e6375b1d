-- What a start costs against a rate: a number, or what the argument says.
local limits = require "support.limits"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a constraint with rate", function()
  local jq = space.each()

  local limit, _, starts_at = limits.in_time(jq)

  describe("with cost", function()
    local function pay(...)
      local arguments = {}
      for i, cost in ipairs({ ... }) do
        arguments[i] = { n = cost }
      end
      return jq:enqueue_each({ name = "a", timeout = 1000 }, unpack(arguments))
    end

    it("counts 1 where there is no number from 0 on", function()
      limit({ limit = 2, period = 10 }, { cost = "argument.n" })
      for _, argument in ipairs({ {}, { n = "5" }, { n = -1 }, { n = true }, { n = { 5 } }, { n = msgpack.NAN },
        { n = msgpack.bin("5") }, "\192", "\161" }) do
        jq:enqueue_each({ name = "a", timeout = 1000 }, argument, argument, argument)
        assert.are.equal(2, #jq:start("a"))
        jq:pass(10)
        assert.are.equal(1, #jq:start("a"))
        jq:pass(10)
      end
    end)
    it("keeps small jobs from starving a large one", function()
      limit({ limit = 10, period = 10 }, { cost = "argument.n" })
      pay(6)
      jq:start("a")
      local large = pay(8)[1]
      assert.are.equal(0, #jq:start("a"))
      local small = pay(1, 1, 1, 1)
      assert.are.equal(0, #jq:start("a"))
      assert.are.same({ 0 }, starts_at(9.999))
      jq:pass(0.001)
      assert.are.same({ large, small[1], small[2] }, jq:start_ids("a"))
    end)
  end)
end)
