-- Constraints that are added, changed and deleted while jobs wait and run.
local limits = require "support.limits"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("changed while jobs wait and run", function()
    it("wakes who sleeps for keys that are still to be looked at", function()
      limit(1, nil, { by = "argument.v" })
      for v = 1, 250 do
        jq:enqueue_each({ name = "a", timeout = 1000 }, { v = v }, { v = v })
      end
      assert.are.equal(250, #jq:start({ queues = "a", count = 300 }))
      jq:sleep("w", "channel", "a", 60000)
      limit(2, nil, { by = "argument.v" })
      local started, jobs = 0, {}
      while jobs[1] or jobs.next_ms == 0 or jq:is_woken("channel") do
        jobs = jq:start({ worker = "w", queues = "a", count = 300, wait = { on = "channel", ms = 60000 } })
        started = started + #jobs
      end
      assert.are.equal(250, started)
      assert.are.same({}, jq:audit())
    end)
  end)
end)
