local space = require "support.space"

describe("release", function()
  local jq = space.each()
  local function taken(spec)
    jq:enqueue(spec or "a")
    return jq:take("a")
  end
  it("repeated when the job runs again does not take it away", function()
    local job = taken()
    jq:release(job)
    local again = jq:take("a")
    jq:unchanged(function()
      jq:release(job)
    end)
    assert.are.equal("done", jq:succeed(again))
  end)
end)
