local space = require "support.space"

describe("change", function()
  local jq = space.each()
  local function change(id, more, argument)
    local spec = space.with({ id = id }, more)
    return jq:call("change", spec, argument or "")[1]
  end
  it("of tags is allowed in any state, of nothing else once it runs", function()
    local id = jq:enqueue("a")
    local job = jq:take("a")
    assert.are.equal("running", change(id, { tags = { "x" } }))
    assert.are.equal("CONFLICT", change(id, { priority = 1 }))
    assert.are.equal("CONFLICT", change(id, { tags = { "y" } }, "\1"))
    jq:succeed(job)
    assert.are.equal("done", change(id, { tags = { "z" } }))
    assert.are.same({ "z" }, jq:get(id).tags)
    assert.are.equal("NOTFOUND", change(space.UNKNOWN_ID, { priority = 1 }))
  end)
end)

