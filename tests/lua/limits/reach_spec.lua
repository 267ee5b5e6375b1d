-- Constraints over several queues, under every order of them, and for workers that are pushed to.
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  --- Limits the jobs of one name, or those that match.
  local function limit(concurrency, match, more)
    local spec = { id = "c", concurrency = concurrency }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    return jq:constrain(spec, match or { name = "a" })
  end

  describe("over queues", function()
    local function held_in(queue, count)
      return jq:enqueue_many({ name = "a", queue = queue }, count)
    end

    it("gives room to whoever asks, though better jobs are held in other queues", function()
      limit(1)
      local first = held_in("q1", 1)[1]
      local job = jq:start_one("q1")
      assert.are.equal(first, job.id)
      jq:enqueue({ name = "a", queue = "q1", priority = -5 })
      local here = held_in("q2", 1)[1]
      assert.are.same({}, jq:start_ids({ "q1", "q2" }))
      jq:succeed(job)
      assert.are.same({ here }, jq:start_ids("q2"))
      assert.are.same({}, jq:start_ids("q1"))
    end)
    it("gives room past a queue that is paused", function()
      limit(1)
      held_in("q1", 1)
      local job = jq:start_one("q1")
      local better = jq:enqueue({ name = "a", queue = "q1", priority = -5 })
      local here = held_in("q2", 1)[1]
      jq:start("*")
      jq:queue({ name = "q1", paused = true })
      jq:succeed(job)
      local jobs = jq:start("*")
      assert.are.same({ here }, space.ids(jobs))
      jq:queue({ name = "q1", paused = false })
      assert.are.same({}, jq:start_ids("*"))
      jq:succeed(jobs[1])
      assert.are.same({ better }, jq:start_ids("*"))
    end)
    it("gives room that came while the queue was paused, after it is resumed", function()
      limit(1)
      held_in("q1", 1)
      local job = jq:start_one("q1")
      local id = held_in("q1", 1)[1]
      jq:start("q1")
      jq:queue({ name = "q1", paused = true })
      jq:succeed(job)
      assert.are.same({}, jq:start_ids("q1"))
      jq:queue({ name = "q1", paused = false })
      assert.are.same({ id }, jq:start_ids("q1"))
    end)
    it("is filled by jobs of several queues in their common order", function()
      limit(3)
      local ids = jq:enqueue_all({ name = "a", queue = "q1", priority = 1 }, { name = "a", queue = "q2" },
        { name = "a", queue = "mail.x", priority = -1 }, { name = "a", queue = "q1" }, { name = "b", queue = "q2" })
      assert.are.same({ ids[3], ids[2], ids[4], ids[5] }, jq:start_ids("*"))
    end)
    for what, queues in pairs({ ["*"] = "*", ["a pattern"] = "q*", ["a list"] = { "q1", "q2", "q3" },
      ["a list with a pattern"] = { "q1", "q*" } }) do
      it("holds and frees for a pick of " .. what, function()
        limit(1)
        local ids = jq:enqueue_all({ name = "a", queue = "q2" }, { name = "a", queue = "q1" },
          { name = "b", queue = "q2" }, { name = "a", queue = "q3", priority = -1 }, { name = "b", queue = "q3" })
        local jobs = jq:start(queues)
        assert.are.same({ ids[4], ids[3], ids[5] }, space.ids(jobs))
        assert.are.same({}, jq:start_ids(queues))
        jq:succeed(jobs[1])
        jobs = jq:start(queues)
        assert.are.same({ ids[1] }, space.ids(jobs))
        local late = jq:enqueue({ name = "b", queue = "q1" })
        assert.are.same({ late }, jq:start_ids(queues))
        jq:succeed(jobs[1])
        assert.are.same({ ids[2] }, jq:start_ids(queues))
      end)
      it("is freed for a pick of " .. what .. " by a job that another took", function()
        limit(1)
        local ids = jq:enqueue_all({ name = "a", queue = "q1" }, { name = "a", queue = "q2" })
        local job = jq:start_one("q1")
        assert.are.same({}, jq:start_ids(queues))
        jq:succeed(job)
        assert.are.same({ ids[2] }, jq:start_ids(queues))
      end)
    end
    it("holds and frees jobs picked over 300 queues by a pattern", function()
      limit(3)
      local ids = {}
      for i = 1, 300 do
        ids[i] = jq:enqueue({ name = i % 3 == 0 and "b" or "a", queue = "q" .. i })
      end
      local jobs = jq:start("q*")
      assert.are.equal(103, #jobs)
      assert.are.same({ ids[1], ids[2], ids[3], ids[4], ids[6], ids[9] },
        { jobs[1].id, jobs[2].id, jobs[3].id, jobs[4].id, jobs[5].id, jobs[6].id })
      jq:succeed(jobs[2])
      assert.are.same({ ids[5] }, jq:start_ids("q*"))
    end)
    it("holds for order = ordered", function()
      limit(1)
      local ids = jq:enqueue_all({ name = "a", queue = "q2" }, { name = "a", queue = "q1" },
        { name = "b", queue = "q2" }, { name = "b", queue = "q1" })
      local spec = { queues = { "q1", "q2" }, order = "ordered" }
      local jobs = jq:start(spec)
      assert.are.same({ ids[2], ids[4], ids[3] }, space.ids(jobs))
      jq:succeed(jobs[1])
      assert.are.same({ ids[1] }, jq:start_ids(spec))
    end)
    it("holds for order = round_robin", function()
      limit(1)
      local ids = jq:enqueue_all({ name = "a", queue = "q1" }, { name = "a", queue = "q1" },
        { name = "b", queue = "q1" }, { name = "a", queue = "q2" }, { name = "b", queue = "q2" })
      local spec = { queues = { "q1", "q2" }, order = "round_robin" }
      local jobs = jq:start(spec)
      assert.are.equal(3, #jobs)
      local started = space.ids(jobs)
      table.sort(started)
      assert.are.same({ ids[1], ids[3], ids[5] }, started)
      jq:succeed(jobs[1].name == "a" and jobs[1] or jobs[2])
      assert.are.equal(1, #jq:start(spec))
    end)
    it("holds for order = shuffled", function()
      limit(2)
      for i = 1, 3 do
        jq:enqueue_many({ name = "a", queue = "q" .. i }, 4)
        jq:enqueue_many({ name = "b", queue = "q" .. i }, 4)
      end
      local spec = { queues = { "q1", "q2", "q3" }, order = "shuffled" }
      local counts = { a = 0, b = 0 }
      for _, job in ipairs(jq:start(spec)) do
        counts[job.name] = counts[job.name] + 1
      end
      assert.are.same({ a = 2, b = 12 }, counts)
    end)
    it("leaves queues that it does not match as they were", function()
      limit(1)
      jq:enqueue_many({ name = "a" }, 5)
      jq:start("a")
      local ids = jq:enqueue_all("b", { name = "b", priority = -1 }, { name = "b", delay = 1 })
      assert.are.same({ ids[2], ids[1] }, jq:pick_ids({ queues = "b", count = 5 }))
      jq:pass(1)
      local job = jq:pick("b")[1]
      assert.are.equal(ids[3], job.id)
      jq:release(job)
      job = jq:pick("b")[1]
      assert.are.equal(2, job.attempt)
      jq:fail(job)
      assert.are.same({ retrying = 1, running = 2 }, jq:counts("b"))
      assert.are.equal(1, jq:constraint("c").running)
    end)
  end)

  describe("for workers that are pushed to", function()
    local function worker(spec)
      spec.url = spec.url or "http://w/"
      spec.max_jobs = spec.max_jobs or 10
      return jq:register(spec)
    end

    it("lets so many jobs run at once", function()
      limit(2)
      worker({})
      local ids = jq:enqueue_all("a", "a", "a", "b")
      local jobs = jq:push()
      assert.are.same({ ids[1], ids[2], ids[4] }, space.ids(jobs))
      jq:succeed(jobs[1])
      assert.are.same({ ids[3] }, space.ids(jq:push()))
    end)
    it("counts with those that were picked", function()
      limit(2)
      worker({ queues = "a" })
      local ids = jq:enqueue_many({ name = "a" }, 3)
      local job = jq:start_one("a")
      assert.are.same({ ids[2] }, space.ids(jq:push()))
      jq:succeed(job)
      assert.are.same({ ids[3] }, space.ids(jq:push()))
    end)
    it("holds over pools of different queues", function()
      limit(1)
      worker({ url = "http://1/", queues = "q1" })
      worker({ url = "http://2/", queues = { "q2", "q3" } })
      local ids = jq:enqueue_all({ name = "a", queue = "q2" }, { name = "a", queue = "q1" },
        { name = "b", queue = "q1" }, { name = "b", queue = "q3" })
      local jobs = jq:push()
      local started = space.ids(jobs)
      table.sort(started)
      assert.are.same({ ids[1], ids[3], ids[4] }, started)
      for _, job in ipairs(jobs) do
        if job.name == "a" then
          jq:succeed(job)
        end
      end
      assert.are.same({ ids[2] }, space.ids(jq:push()))
    end)
    it("delays no job of a worker's other queues", function()
      limit(1)
      worker({ queues = "*", max_jobs = 2 })
      jq:enqueue_many({ name = "a", priority = -1 }, 20)
      local free = jq:enqueue("b")
      local jobs = jq:push()
      assert.are.same({ "a", "b" }, { jobs[1].name, jobs[2].name })
      assert.are.equal(free, jobs[2].id)
    end)
    it("holds with refused names", function()
      limit(1)
      local one = worker({ queues = "q" })
      local ids = jq:enqueue_all({ name = "a", queue = "q" }, { name = "a", queue = "q" }, { name = "b", queue = "q" })
      local jobs = jq:push()
      assert.are.same({ ids[1], ids[3] }, space.ids(jobs))
      jq:call("refuse", { worker = one, jobs = { jq:held(ids[1]) }, why = "unknown" })
      assert.are.same({}, space.ids(jq:push()))
      worker({ url = "http://2/", queues = "q" })
      jobs = jq:push()
      assert.are.same({ ids[1] }, space.ids(jobs))
      jq:succeed(jobs[1])
      assert.are.same({ ids[2] }, space.ids(jq:push()))
    end)
    it("wakes a master when room comes back", function()
      limit(1)
      worker({})
      local ids = jq:enqueue_all("a", "a")
      local job = jq:push()[1]
      local function sleep()
        return #jq:assign({ wait = { on = "push", ms = 10000 } })
      end
      assert.are.equal(0, sleep())
      jq:is_woken("push")
      assert.are.equal(0, sleep())
      jq:succeed(job)
      assert.is_true(jq:is_woken("push"))
      assert.are.same({ ids[2] }, space.ids(jq:push()))
    end)
  end)
end)
