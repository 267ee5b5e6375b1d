local space = require "support.space"

describe("another queue", function()
  local jq = space.each()

  local function change(id, more)
    more.id = id
    return jq:call("change", more, "")[1]
  end

  describe("by change", function()
    it("is where one expires", function()
      local id = jq:enqueue({ name = "a", expires_in = 5 })
      local other = jq:enqueue({ name = "a", expires_in = 5, delay = 60 })
      change(id, { queue = "b" })
      change(other, { queue = "b" })
      jq:pass(5)
      jq:settle()
      assert.are.same({ "error", "error" }, jq:statuses({ id, other }))
      assert.are.same({ {}, { error = 2 } }, { jq:counts("a"), jq:counts("b") })
    end)
  end)
end)
