local space = require "support.space"

describe("unconstrain", function()
  local jq = space.each()

  it("forgets more keys than one call looks at", function()
    jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
    for v = 1, 250 do
      jq:enqueue_each("a", { v = v })
    end
    assert.are.equal(250, #jq:start({ queues = "a", count = 300 }))
    jq:unconstrain("c")
    assert.are.same({}, jq:audit())
    jq:start("a")
    jq:start("a")
    assert.are.same({}, jq:audit())
    for _, key in ipairs(jq:keys()) do
      assert.is_nil(key:find(":key:", 1, true))
    end
  end)
  it("leaves nothing behind", function()
    jq:set({ cancelled_ttl = 0, done_ttl = 0, error_ttl = 0 })

    --- Lives that are over, records and all.
    local function live(count)
      for i = 1, count do
        jq:enqueue_each({ name = "a", tags = { "x" } }, { v = i }, { v = i }, { v = i })
      end
      for step = 1, 12 do
        for i, job in ipairs(jq:start("a")) do
          if step == 1 and i % 4 == 0 then
            jq:release(job, 1, { c = 3 })
          elseif i % 4 == 1 then
            jq:cancel(job.id)
          elseif i % 4 == 2 then
            jq:fail(job, { should_retry = false })
          else
            jq:succeed(job)
          end
        end
        jq:pass(60)
      end
      jq:settle()
      assert.are.same({}, jq:counts("a"))
    end

    local function constrain()
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1,
        rate = { limit = 50, period = 10 } }, { name = "a" })
      jq:constrain({ id = "d", concurrency = 30 }, { tags = "x" })
      jq:constrain({ id = "e", rate = { limit = 250, period = 10 } }, { queue = "a" })
    end

    live(1)
    local bare = jq:keys()
    constrain()
    live(1)
    local constrained = jq:keys()
    live(40)
    assert.are.same(constrained, jq:keys())
    for _, id in ipairs({ "c", "d", "e" }) do
      jq:unconstrain(id)
    end
    live(1)
    local left = {}
    for _, key in ipairs(jq:keys()) do
      left[key] = true
    end
    for _, key in ipairs(bare) do
      left[key] = nil
    end
    for key in pairs(left) do -- what was found out about a name of jobs in a queue is kept with the queue
      assert.are.equal(jq.name .. ":matching:", key:match("^.*:matching:"))
    end
  end)
  -- The valid spec names nothing that is there: it is refused for that alone.
end)
