-- Lanes start in exact order, one by one and many at once; what stands in their index stays little.
local space = require "support.space"

describe("jobs in lanes", function()
  local jq = space.each()

  local function enqueue(queue, value, priority)
    local spec = { name = value == 0 and "plain" or "job", queue = queue, priority = priority, timeout = 100000 }
    return jq:enqueue(spec, { v = value })
  end

  local function sort(waiting)
    table.sort(waiting, function(a, b)
      return a.priority < b.priority or a.priority == b.priority and a.id < b.id
    end)
  end

  --- The ids of the first of those that wait.
  local function take_first(waiting, count)
    local ids = {}
    for i = 1, math.min(count, #waiting) do
      ids[i] = table.remove(waiting, 1).id
    end
    return ids
  end

  for seed = 1, 6 do
    it("start by priority and id, whatever comes and goes meanwhile: " .. seed, function()
      math.randomseed(seed)
      jq:constrain({ id = "each", by = "argument.v", concurrency = 1000 }, { name = "job" })
      if seed % 2 == 0 then
        jq:constrain({ id = "all", rate = { limit = 100000, period = 60 } }, { name = "job" })
      end
      local waiting, queues = {}, seed % 3 == 0 and { "q1" } or { "q1", "q2" }
      for _ = 1, 60 do
        for _ = 1, math.random(0, 6) do
          local priority = math.random(0, 2)
          local id = enqueue(queues[math.random(#queues)], math.random(0, 3), priority)
          waiting[#waiting + 1] = { id = id, priority = priority }
        end
        if waiting[1] and math.random(3) == 1 then
          jq:cancel(table.remove(waiting, math.random(#waiting)).id)
        end
        sort(waiting)
        local count = math.random(1, 8)
        local expected = take_first(waiting, count)
        assert.are.same(expected, jq:pick_ids({ queues = queues, count = count }))
      end
    end)
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
