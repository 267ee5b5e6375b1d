local space = require "support.space"

describe("retention", function()
  local jq = space.each()

  -- Each way to end, by its state.
  local ENDS = {
    done = function(job)
      return jq:succeed(job)
    end,
    error = function(job)
      return jq:fail(job, { should_retry = false, message = "no" }, "\163bad")
    end,
    cancelled = function(job)
      return jq:cancel(job.id)
    end,
  }

  --- So many jobs that ended thus, a millisecond apart.
  local function ended(state, count, name)
    local ids = jq:enqueue_many({ name = name or "a" }, count)
    for _, job in ipairs(jq:pick({ queues = name or "a", count = count })) do
      ENDS[state](job)
      jq:pass(0.001)
    end
    return ids
  end

  --- Old records go within some seconds of passing a limit.
  local function settle()
    jq:pass(6)
    jq:settle()
  end

  local function kept(ids)
    local found = {}
    for i, id in ipairs(ids) do
      if jq:get(id) then
        found[#found + 1] = i
      end
    end
    return found
  end

  local function keys_of(id)
    local found = 0
    for _, key in ipairs(jq:keys()) do
      if key:find(id, 1, true) then
        found = found + 1
      end
    end
    return found
  end

  for state in pairs(ENDS) do
    describe("of " .. state .. " jobs", function()
      it("keeps as many as the limit says, the newest", function()
        jq:set({ [state .. "_max"] = 3 })
        local ids = ended(state, 10)
        settle()
        assert.are.same({ 8, 9, 10 }, kept(ids))
      end)
      for _, setting in ipairs({ "_ttl", "_max" }) do
        it("drops them at once when " .. state .. setting .. " is 0", function()
          jq:set({ [state .. setting] = 0 })
          local ids = ended(state, 1)
          assert.is_nil(jq:get(ids[1]))
          assert.are.equal(0, keys_of(ids[1]))
          assert.are.same({}, jq:counts("a"))
        end)
      end
      it("drops thousands in bounded steps #once", function()
        jq:set({ [state .. "_ttl"] = 100 })
        local ids = jq:enqueue_many({ name = "a" }, 1000)
        local jobs = jq:pick({ queues = "a", count = 1000 })
        for _, job in ipairs(jobs) do
          ENDS[state](job)
        end
        jq:pass(100)
        local next_ms, moved = jq:tick(100)
        assert.are.equal(0, next_ms)
        assert.is_true(moved <= 100)
        assert.is_true(jq:queue("a")[state] >= 600) -- four removals are one step
        settle()
        assert.are.same({}, kept({ ids[1], ids[500], ids[1000] }))
      end)
    end)
  end

  it("reaches a thousand queues after a change of settings #once", function()
    local ids = {}
    for i = 1, 250 do
      ids[i] = ended("done", 1, "q" .. i)[1]
    end
    jq:set({ done_ttl = 0 })
    jq:pass(6)
    local steps = 0
    while jq:tick(100) == 0 do
      steps = steps + 1
    end
    assert.is_true(steps >= 2)
    assert.are.same({}, kept(ids))
  end)
  describe("of kept results", function()
    local function kept_result()
      jq:enqueue({ name = "a", keep_result = true })
      local job = jq:take("a")
      jq:succeed(job, "\163yes")
      return job.id
    end
    it("does not count the time of the result twice", function()
      jq:set({ done_ttl = 200, result_ttl = 100 })
      local id = kept_result()
      jq:pass(150)
      settle()
      assert.are.equal("done", jq:status(id))
      jq:pass(50)
      settle()
      assert.is_nil(jq:get(id))
    end)
  end)
end)
