-- Fair queues beside others, and under constraints.
local fairness = require "support.fair"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a fair queue", function()
  local jq = space.each()

  local fair, enqueue, letters = fairness(jq)

  describe("under constraints", function()
    it("gives the turn of a held value to the next", function()
      fair({ by = "argument.v" })
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { queue = "q" })
      local ids = enqueue("AAABBC")
      local jobs = jq:start("q")
      assert.are.same({ ids[1], ids[4], ids[6] }, space.ids(jobs))
      jq:succeed(jobs[2])
      assert.are.same({ ids[5] }, jq:start_ids("q"))
      jq:succeed(jobs[1])
      assert.are.same({ ids[2] }, jq:start_ids("q"))
    end)
    it("leaves who was held its place, for want of turns taken", function()
      fair({ by = "argument.v" })
      jq:constrain({ id = "c", concurrency = 1 }, { ["argument.v"] = "A" })
      enqueue("AAAABBBB")
      local a = jq:start_one("q")
      assert.are.equal("BB", letters(2)) -- F(A) 1, F(B) 2, V 1
      jq:succeed(a)
      assert.are.equal("AB", letters(2))
    end)
    it("takes turns for the room of a common limit", function()
      fair({ by = "argument.v" })
      jq:constrain({ id = "c", concurrency = 2 }, { queue = "q" })
      enqueue("AAAAAABBB")
      local running, started = jq:start("q"), ""
      while running[1] do
        local job = table.remove(running, 1)
        started = started .. msgpack.unpack(job.blob).v
        jq:succeed(job)
        for _, more in ipairs(jq:start("q")) do
          running[#running + 1] = more
        end
      end
      assert.are.equal("ABABABAAA", started)
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
    it("keeps turns when a constraint is added and deleted while jobs wait", function()
      fair({ by = "argument.v" })
      enqueue("AAAAAABBBB")
      assert.are.equal("ABA", letters(3))
      jq:constrain({ id = "c", concurrency = 1000 }, { queue = "q" })
      assert.are.equal("BA", letters(2))
      jq:unconstrain("c")
      assert.are.equal("BABAA", letters())
    end)
  end)

  describe("among other queues", function()
    it("is stood for by the job it would give next", function()
      fair({ by = "argument.v" })
      local first = enqueue("AA")
      local other = jq:enqueue({ name = "job", queue = "other" }, { v = "O" })
      local last = enqueue("B")
      assert.are.same({ first[1], other, last[1], first[2] }, jq:start_ids({ "q", "other" }))
    end)
    it("goes on with its turns when another priority comes between", function()
      fair({ by = "argument.v" })
      enqueue("AAABB")
      assert.are.equal("AB", letters(2))
      enqueue("C", { priority = -1 })
      assert.are.equal("CABA", letters())
    end)
    it("gives turns to workers that are pushed to", function()
      fair({ by = "argument.v" })
      jq:register({ url = "http://w/", queues = "q", max_jobs = 10 })
      local ids = enqueue("AAAB")
      assert.are.same({ ids[1], ids[4], ids[2], ids[3] }, space.ids(jq:push()))
    end)
  end)
end)
