-- Room under a constraint comes back once, and wakes who sleeps.
local limits = require "support.limits"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("gives room back", function()
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
