-- Queues that several share: among equal priorities the values of the jobs take turns, by their weights.
local fairness = require "support.fair"
local space = require "support.space"

describe("a fair queue", function()
  local jq = space.each()

  local fair, enqueue, letters = fairness(jq)
  it("gives no credit to who had nothing to run", function()
    fair({ by = "argument.v" })
    enqueue(("A"):rep(20) .. "B")
    assert.are.equal("ABAAAAAAAA", letters(10))
    enqueue("BBBBB")
    assert.are.equal("BABABABA", letters(8))
  end)
  it("follows the finish times exactly", function()
    fair({ by = "argument.v", weights = { A = 2 } })
    enqueue("AAAAAABBBB")
    -- F(A) 0.5; B's 0 is least; A 0.5 → 1; then 1 and 1, A's id is less; B 1 → 2; A 1.5 → 2; A 2 → 2.5; …
    assert.are.equal("ABAABAABAB", letters(10))
  end)
  describe("set while jobs wait", function()
    it("to another value is fair by that", function()
      fair({ by = "argument.v" })
      local ids = jq:enqueue_each({ name = "job", queue = "q" }, { v = 1, w = 1 }, { v = 1, w = 1 }, { v = 2, w = 1 },
        { v = 2, w = 2 })
      fair({ by = "argument.w" })
      assert.are.same({ ids[1], ids[4], ids[2], ids[3] }, jq:start_ids("q"))
    end)
    it("is fair for a thousand jobs #once", function()
      enqueue(("A"):rep(600) .. ("B"):rep(400))
      fair({ by = "argument.v" })
      assert.are.equal(("AB"):rep(400) .. ("A"):rep(200), letters())
    end)
  end)
end)
