local space = require "support.space"

describe("explain", function()
  local jq = space.each()

  describe("counts the jobs ahead", function()
    it("in its lane, for a job that is held", function()
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
      jq:enqueue_each("a", { v = 1 }, { v = 2 })
      jq:start("a")
      local ids = jq:enqueue_each("a", { v = 1 }, { v = 2 }, { v = 1 }, { v = 2 }, { v = 1 })
      local better = jq:enqueue({ name = "a", priority = -1 }, { v = 1 })
      jq:start("a")
      assert.are.same({ 1, 2, 3, 0, 0, 1 }, { jq:explain(ids[1]).ahead, jq:explain(ids[3]).ahead,
        jq:explain(ids[5]).ahead, jq:explain(better).ahead, jq:explain(ids[2]).ahead, jq:explain(ids[4]).ahead })
    end)
  end)
end)
