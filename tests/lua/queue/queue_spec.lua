local space = require "support.space"

describe("queue", function()
  local jq = space.each()
  describe("paused", function()
    it("moves what is due, for later", function()
      local id = jq:enqueue({ name = "a", delay = 1 })
      jq:queue({ name = "a", paused = true })
      jq:pass(1)
      assert.are.same({}, jq:pick_ids("a"))
      assert.are.equal("queued", jq:status(id))
    end)
  end)
end)
