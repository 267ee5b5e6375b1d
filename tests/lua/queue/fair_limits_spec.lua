-- Fair queues beside others, and under constraints.
local fairness = require "support.fair"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a fair queue", function()
  local jq = space.each()

  local fair, enqueue, letters = fairness(jq)

  describe("under constraints", function()
    it("leaves who was held its place, for want of turns taken", function()
      fair({ by = "argument.v" })
      jq:constrain({ id = "c", concurrency = 1 }, { ["argument.v"] = "A" })
      enqueue("AAAABBBB")
      local a = jq:start_one("q")
      assert.are.equal("BB", letters(2)) -- F(A) 1, F(B) 2, V 1
      jq:succeed(a)
      assert.are.equal("AB", letters(2))
    end)
    it("takes turns when hundreds of keys get room at once #once", function()
      fair({ by = "argument.v" })
      jq:constrain({ id = "c", by = "argument.w", concurrency = 1 }, { ["argument.w"] = { exists = true } })
      local runners, of_a, of_b = {}, {}, {}
      for w = 1, 300 do
        runners[w] = { w = w }
        of_a[w], of_b[w] = { v = "A", w = w }, { v = "B", w = w }
      end
      jq:enqueue_each("runner", unpack(runners))
      local outcomes = { { worker = "worker" } }
      for _, job in ipairs(jq:start("runner")) do
        outcomes[#outcomes + 1] = { id = job.id, token = job.token, type = "success" }
        outcomes[#outcomes + 1] = msgpack.NIL
      end
      of_a = jq:enqueue_each({ name = "job", queue = "q" }, unpack(of_a))
      of_b = jq:enqueue_each({ name = "job", queue = "q" }, unpack(of_b))
      assert.are.same({}, jq:start_ids("q"))
      jq:call_list("finish", outcomes)
      local expected = {}
      for w = 1, 300 do
        expected[w] = w % 2 == 1 and of_a[w] or of_b[w]
      end
      assert.are.same(expected, jq:start_ids("q"))
    end)
  end)
end)
