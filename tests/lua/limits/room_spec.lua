-- Room under a constraint comes back on every way out of `running`, and wakes who sleeps.
local limits = require "support.limits"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("gives room back", function()
    local function worker_of(spec)
      return jq:register({ name = "w", url = spec and spec.url, queues = "a", max_jobs = 1 })
    end

    -- Each leads the job that runs out of it, at the worker that holds it.
    local ways = {
      success = function(job)
        assert.are.equal("done", jq:succeed(job))
      end,
      ["success with a result"] = function(job)
        assert.are.equal("done", jq:succeed(job, "\5"))
      end,
      ["a failure for good"] = function(job)
        assert.are.equal("error", jq:fail(job, { should_retry = false }))
      end,
      ["a failure that is retried"] = function(job)
        assert.are.equal("retrying", jq:fail(job))
      end,
      ["a failure with reason timeout"] = function(job)
        assert.are.equal("retrying", jq:fail(job, { reason = "timeout" }))
      end,
      ["a lease that ran out"] = function()
        jq:pass(30)
      end,
      ["a lease that ran out, found by a tick"] = function(job)
        jq:pass(30)
        jq:tick()
        assert.are.equal("retrying", jq:status(job.id))
      end,
      cancel = function(job)
        assert.are.equal("running", jq:cancel(job.id))
      end,
      ["cancel with force"] = function(job)
        jq:set({ cancel_running = false })
        assert.are.equal("CONFLICT", jq:cancel(job.id))
        assert.are.equal("running", jq:cancel(job.id, true))
      end,
      ["release with a delay"] = function(job)
        assert.are.equal("scheduled", jq:release(job, 60))
      end,
    }
    for way, go in pairs(ways) do
      it("on " .. way, function()
        limit(1)
        local ids = jq:enqueue_all("a", "a", "a")
        local jobs = jq:start("a")
        assert.are.same({ ids[1] }, space.ids(jobs))
        go(jobs[1])
        jobs = jq:start("a")
        assert.are.same({ ids[2] }, space.ids(jobs))
        assert.are.equal(1, jq:constraint("c").running)
        jq:succeed(jobs[1])
        assert.are.equal(ids[3], jq:start_one("a").id)
      end)
    end
    it("once, though a finish, a release or a cancel is repeated", function()
      limit(1)
      local ids = jq:enqueue_many({ name = "a" }, 6)
      local job = jq:start_one("a")
      jq:succeed(job)
      jq:succeed(job)
      jq:release(job)
      jq:cancel(job.id)
      job = jq:start_one("a")
      assert.are.equal(ids[2], job.id)
      jq:release(job, 60)
      jq:release(job, 60)
      job = jq:start_one("a")
      assert.are.equal(ids[3], job.id)
      jq:cancel(job.id)
      jq:cancel(job.id)
      jq:succeed(job)
      assert.are.same({ ids[4] }, jq:start_ids("a"))
      assert.are.same({}, jq:start_ids("a"))
      assert.are.equal(1, jq:constraint("c").running)
    end)

    local pushed_ways = {
      unregister = function(worker)
        assert.are.equal(1, jq:call("unregister", { worker = worker }))
      end,
      ["registering the url again"] = function()
        worker_of({ url = "http://w/" })
      end,
      ["refuse, unknown"] = function(worker, job)
        assert.are.same({ "queued" }, jq:call("refuse", { worker = worker, jobs = { jq:held(job) },
          why = "unknown" }))
      end,
      ["refuse, busy"] = function(worker, job)
        jq:call("refuse", { worker = worker, jobs = { jq:held(job) }, why = "busy" })
      end,
      ["refuse, unreachable"] = function(worker, job)
        jq:call("refuse", { worker = worker, jobs = { jq:held(job) }, why = "unreachable" })
      end,
    }
    for way, go in pairs(pushed_ways) do
      it("on " .. way, function()
        limit(1)
        local worker = worker_of({ url = "http://w/" })
        local ids = jq:enqueue_all("a", "a")
        local jobs = jq:push()
        assert.are.same({ ids[1] }, space.ids(jobs))
        assert.are.same({}, jq:start_ids("a"))
        go(worker, jobs[1])
        assert.are.equal("queued", jq:status(ids[1]))
        assert.are.equal(0, jq:constraint("c").running)
        assert.are.same({ ids[1] }, jq:start_ids("a"))
      end)
    end
  end)

  describe("and sleepers", function()
    local function pick(worker)
      return jq:pick({ worker = worker, queues = "a", wait = { on = "ch", ms = 60000 } })
    end

    --- Picks, woken or not, until it can sleep.
    local function sleep(worker)
      for _ = 1, 20 do
        local jobs = pick(worker)
        assert.are.same({}, space.ids(jobs))
        if jobs.next_ms ~= 0 then
          return jobs.next_ms
        end
      end
      error("a pick answers 0 for ever")
    end

    for way, go in pairs({
      success = function(job)
        jq:succeed(job)
      end,
      ["a failure"] = function(job)
        jq:fail(job)
      end,
      ["a lapse"] = function()
        jq:pass(30)
        jq:tick()
      end,
      cancel = function(job)
        jq:cancel(job.id)
      end,
      release = function(job)
        jq:release(job)
      end,
      ["release with a delay"] = function(job)
        jq:release(job, 40)
      end,
      widening = function()
        limit(2)
      end,
      deleting = function()
        jq:unconstrain("c")
      end,
      ["another match"] = function()
        limit(1, { name = "b" })
      end,
    }) do
      it("wakes one when room comes by " .. way, function()
        limit(1)
        jq:enqueue_all("a", "a")
        local job = jq:start_one("a")
        sleep("w1")
        jq:is_woken("ch")
        sleep("w1")
        go(job)
        assert.is_true(jq:is_woken("ch"))
        assert.are.equal(1, #jq:start({ worker = "w1", queues = "a", count = 1, wait = { on = "ch", ms = 60000 } }))
      end)
    end
  end)
end)
