local space = require "support.space"

describe("tags", function()
  local jq = space.each()
  it("may be 32, of 255 bytes each", function()
    local tags = {}
    for i = 1, 32 do
      tags[i] = string.format("%02d", i) .. ("x"):rep(253)
    end
    local id = jq:enqueue({ name = "a", tags = tags })
    jq:constrain({ id = "c", concurrency = 1 }, { tags = tags[32] })
    jq:enqueue({ name = "a", tags = { tags[32] } })
    assert.are.same(tags, jq:get(id).tags)
    assert.are.equal(1, #jq:start("a"))
  end)
end)
