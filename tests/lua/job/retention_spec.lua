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

  for state in pairs(ENDS) do
    describe("of " .. state .. " jobs", function()
      it("keeps as many as the limit says, the newest", function()
        jq:set({ [state .. "_max"] = 3 })
        local ids = ended(state, 10)
        settle()
        assert.are.same({ 8, 9, 10 }, kept(ids))
      end)
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
