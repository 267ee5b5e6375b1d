local space = require "support.space"

describe("head", function()
  local jq = space.each()

  local function head(queues)
    return jq:call("head", { queues = queues })
  end

  it("is nothing where nothing waits", function()
    jq:enqueue({ name = "a", delay = 5 })
    assert.are.same({}, head("a"))
    assert.are.same({}, head({ "a", "b*", "*" }))
  end)
  it("is the job that a pick of the same queues starts", function()
    jq:enqueue("a")
    jq:enqueue({ name = "mail.a", priority = -1 })
    jq:enqueue({ name = "mail.b", priority = 3 })
    jq:enqueue({ name = "mail.b", priority = -1 })
    jq:enqueue({ name = "z", priority = -2 })
    for _, queues in ipairs({ "a", { "mail.b", "a" }, "mail.*", { "a", "*b" }, "*" }) do
      local told = head(queues)
      assert.are.equal(told[2], jq:take(queues).id)
      assert.are.equal(jq:get(told[2]).priority, told[1])
    end
  end)
  it("changes nothing", function()
    jq:enqueue({ name = "a", priority = 2 })
    local first = head("*")
    assert.are.same(first, head("*"))
    assert.are.equal("queued", jq:get(first[2]).status)
  end)
  it("leaves out queues that are paused", function()
    jq:enqueue({ name = "a", priority = -1 })
    local id = jq:enqueue("b")
    jq:call("queue", { name = "a", paused = true })
    assert.are.same({}, head("a"))
    assert.are.same({ 0, id }, head("*"))
  end)
  it("finds its way past entries of jobs that went away", function()
    for i = 1, 50 do
      jq:enqueue({ name = "gone" .. i, priority = -1 })
    end
    for i = 1, 50 do
      jq:take("gone" .. i)
    end
    local id = jq:enqueue("a")
    assert.are.same({ 0, id }, head("*"))
  end)
  it("is a lower bound when too many went away, until a pick has looked #once", function()
    for i = 1, 400 do
      jq:enqueue({ name = "gone" .. i, priority = -1 })
    end
    for i = 1, 400 do
      jq:take("gone" .. i)
    end
    local id = jq:enqueue("a")
    assert.are.equal(-1, head("*")[1])
    local other = jq:enqueue({ name = "b", priority = 1 })
    for _ = 1, 20 do
      if jq:pick_ids("*")[1] then
        break
      end
    end
    assert.are.equal("running", jq:get(id).status)
    assert.are.same({ 1, other }, head("*"))
  end)
  it("passes over what a constraint holds, with what is known of the rest", function()
    jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
    local first = jq:enqueue({ name = "a", priority = -1 })
    jq:enqueue({ name = "a", priority = -1 })
    assert.are.same({ -1, first:sub(1, 14) }, head("a")) -- a lower bound, without the number
    local job = jq:take("a")
    jq:pick_ids("a") -- which finds that nothing may start
    assert.are.same({}, head("a"))
    jq:succeed(job)
    assert.are.equal(-1, head("a")[1])
  end)
  it("knows priorities in a fair queue", function()
    jq:call("queue", { name = "a", fair = { { by = "name" } } })
    jq:enqueue({ name = "x", queue = "a", priority = 4 })
    jq:enqueue({ name = "y", queue = "a", priority = 1 })
    assert.are.equal(1, head("a")[1])
  end)
  it("takes a name, a pattern, or a list of them", function()
    jq:refuses("INVALID queues: ", "head", {})
    jq:refuses("INVALID queues: ", "head", { queues = {} })
    jq:refuses("INVALID count: ", "head", { queues = "a", count = 1 })
  end)
end)
