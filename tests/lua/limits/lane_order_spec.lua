-- What stands in the index of lanes stays little, and repairs itself.
local space = require "support.space"

describe("jobs in lanes", function()
  local jq = space.each()

  local function enqueue(queue, value, priority)
    local spec = { name = value == 0 and "plain" or "job", queue = queue, priority = priority, timeout = 100000 }
    return jq:enqueue(spec, { v = value })
  end

  it("leave few entries in the index of lanes behind #once", function()
    jq:constrain({ id = "c", by = "argument.v", concurrency = 10 }, { name = "job" })
    for i = 1, 300 do
      local id = enqueue("q", i % 3, 0)
      local job = jq:take("q")
      assert.are.equal(id, job.id)
      jq:succeed(job)
    end
    assert.is_true(jq:redis("ZCARD", jq.name .. ":lanes:q") <= 4)
  end)

  it("are held by another lane's job that was cancelled, and by nothing else, until somebody looks", function()
    jq:constrain({ id = "c", concurrency = 1 }, { name = "job" })
    jq:constrain({ id = "d", concurrency = 1 }, { name = "job", ["argument.v"] = 2 })
    local running = enqueue("q", 1, 0)
    local job = jq:take("q")
    assert.are.equal(running, job.id)
    local first, second, third = enqueue("q", 1, 0), enqueue("q", 2, 0), enqueue("q", 1, 0)
    assert.are.same({}, jq:pick_ids("q")) -- both lanes are parked
    jq:succeed(job)
    jq:cancel(first)
    assert.are.same({ second }, jq:pick_ids("q"))
    assert.are.same({}, jq:pick_ids("q"))
    jq:succeed({ id = second, attempt = 1 })
    assert.are.same({ third }, jq:pick_ids("q"))
  end)
end)
