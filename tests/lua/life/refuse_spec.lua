local msgpack = require "support.msgpack"
local space = require "support.space"

describe("refuse", function()
  local jq, worker
  before_each(function()
    jq = space.new()
    worker = jq:register({ name = "w", url = "http://w/", max_jobs = 3 })
  end)
  after_each(function()
    jq:close()
  end)
  local function assigned(spec)
    jq:enqueue(spec or "a")
    return jq:assign()[1]
  end
  local function refuse(job, why, more)
    local spec = space.with({ worker = worker, jobs = job and { jq:held(job) } or {}, why = why }, more)
    return jq:call("refuse", spec)[1]
  end

  for _, why in ipairs({ "unknown", "busy", "unreachable" }) do
    it(why .. " gives the job back, no retry spent", function()
      local job = assigned({ name = "a", max_retry = 0 })
      assert.are.equal("queued", refuse(job, why))
      assert.are.same({ "queued", 0 }, { jq:status(job.id), jq:get(job.id).retry_count })
      assert.are.equal(0, jq:worker(worker).held)
    end)
  end

  describe("unknown", function()
    it("keeps jobs of that name from the worker for good", function()
      refuse(assigned(), "unknown")
      jq:pass(20)
      assert.are.same({}, space.ids(jq:assign()))
      assert.are.same({ "a" }, jq:worker(worker).refused)
    end)
  end)

  describe("unreachable", function()
    it("gives the worker nothing until it gives a sign of life", function()
      local job = assigned()
      refuse(job, "unreachable", { retry_after = 600 })
      assert.are.same({}, space.ids(jq:assign()))
      jq:call("heartbeat", { worker = worker, jobs = {} })
      assert.are.same({ job.id }, space.ids(jq:assign()))
    end)
    it("has the worker tried with one job at a time until it finishes one", function()
      jq:enqueue_all("a", "a", "a", "a")
      refuse(nil, "unreachable")
      refuse(nil, "unreachable") -- of one that was under way at the same time
      assert.are.equal(0, #jq:assign())
      jq:pass(1)
      local tried = jq:assign()
      assert.are.equal(1, #tried)
      assert.are.same({ "full", 0 }, { jq:worker(worker).state, #jq:assign() })
      local outcome = { id = tried[1].id, token = tried[1].token, type = "success" }
      jq:call("finish", { worker = worker }, outcome, msgpack.NIL)
      assert.are.equal(3, #jq:assign())
    end)
    it("ends with a single job by an outcome that comes too late", function()
      local late = assigned()
      refuse(late, "unreachable")
      jq:enqueue_all("a", "a")
      local outcome = { id = late.id, token = late.token, type = "success" }
      assert.are.same({ "LOST" }, jq:call("finish", { worker = worker }, outcome, msgpack.NIL))
      assert.are.equal(1, #jq:assign())
    end)
    it("is not over sooner for what else fails meanwhile", function()
      jq:enqueue("a")
      refuse(nil, "unreachable", { retry_after = 20 })
      refuse(nil, "unreachable")
      jq:pass(19)
      assert.are.equal(0, #jq:assign())
      jq:pass(1)
      assert.are.equal(1, #jq:assign())
    end)
    it("lasts twice as long each time in a row, and from the fifth on whatever signs of life there are", function()
      jq:enqueue("a")
      for _, pause in ipairs({ 1, 2, 4, 8, 16 }) do
        refuse(nil, "unreachable")
        if pause > 8 then
          jq:call("heartbeat", { worker = worker, jobs = {} })
        end
        jq:pass(pause - 1)
        assert.are.equal(0, #jq:assign())
        jq:pass(1)
        refuse(jq:assign()[1], "busy")
        jq:pass(1)
      end
    end)
  end)
  it("loses no count of timeouts with the sign of life that ends it", function()
    local id = jq:register({ queues = { "a" } })
    jq:enqueue("a")
    local job = jq:pick({ queues = "a", worker = id })[1]
    jq:call("refuse", { worker = id, why = "unreachable", jobs = {} })
    jq:call("finish", { worker = id },
      { id = job.id, token = job.token, type = "failure", reason = "timeout" }, msgpack.NIL)
    assert.are.equal(1, jq:worker(id).lapsed)
  end)
end)
