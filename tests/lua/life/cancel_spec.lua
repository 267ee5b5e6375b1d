local space = require "support.space"

describe("cancel", function()
  local jq = space.each()
  describe("with atomic", function()
    local function cancel(ids, more)
      return space.with({ ids = ids, atomic = true }, more)
    end
    it("cancels none when one has ended otherwise", function()
      local ids = { jq:enqueue("b"), jq:enqueue("a"), jq:enqueue({ name = "c", max_retry = 0 }) }
      jq:succeed(jq:take("a"))
      jq:fail(jq:take("c"))
      jq:refuses("CONFLICT ids[1]: it has ended (done): " .. ids[2], "cancel", cancel(ids))
      jq:refuses("CONFLICT ids[1]: it has ended (error): " .. ids[3], "cancel", cancel({ ids[1], ids[3] }))
      assert.are.equal("queued", jq:status(ids[1]))
    end)
    it("cancels none when one runs and is protected", function()
      jq:set({ cancel_running = false })
      local ids = { jq:enqueue("b"), jq:enqueue("a") }
      jq:take("a")
      jq:refuses("CONFLICT ids[1]: it runs", "cancel", cancel(ids))
      assert.are.same({ "queued", "running" }, jq:call("cancel", cancel(ids, { force = true })))
    end)
  end)
end)
