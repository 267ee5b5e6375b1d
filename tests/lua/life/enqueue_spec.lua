local space = require "support.space"

describe("enqueue", function()
  local jq = space.each()

  it("rounds a timeout up to a whole millisecond", function()
    assert.are.equal(0.002, jq:get(jq:enqueue({ name = "n", timeout = 0.0011 })).timeout)
  end)

  it("keeps ids in order when the clock is set back", function()
    local first = jq:enqueue("a")
    jq:pass(-3600)
    local second = jq:enqueue("a")
    jq:pass(1)
    local third = jq:enqueue("a")
    assert.is_true(first < second and second < third)
    assert.are.same({ first, second, third }, jq:pick_ids({ queues = "a", count = 5 }))
  end)
end)
