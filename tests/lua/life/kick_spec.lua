local space = require "support.space"

describe("kick", function()
  local jq = space.each()

  it("takes the running jobs of a worker, a step at a time, but none that started meanwhile", function()
    jq:enqueue_many({ name = "a" }, 25)
    local other = jq:take({ queues = "a", worker = "other" })
    jq:pick({ queues = "a", count = 24, worker = "mail-1" })
    local function kick(cursor)
      return jq:call("kick", { where = { worker = "mail-1" }, count = 20, cursor = cursor })
    end
    local step = kick("")
    assert.are.equal(20, step[2])
    jq:pass(1)
    jq:pick({ queues = "a", count = 2, worker = "mail-1" })
    assert.are.same({ "", 4 }, kick(step[1]))
    assert.are.same({ queued = 22, running = 3 }, jq:counts("a"))
    assert.are.equal("running", jq:status(other.id))
  end)
end)
