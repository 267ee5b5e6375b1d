local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a queue's own settings", function()
  local jq = space.each()

  local function own(name, settings)
    return jq:queue({ name = name, set = settings }).settings
  end
  local function done(name, spec)
    local id = jq:enqueue(spec or name)
    jq:succeed(jq:start_one(name))
    return id
  end

  it("say whether records are kept that others do not keep", function()
    jq:set({ done_max = 0, error_ttl = 0, cancelled_max = 0 })
    own("a", { done_max = 10, error_ttl = 100, cancelled_max = 10 })
    local gone, kept = done("b"), done("a")
    assert.are.same({ "gone", "done" }, jq:statuses({ gone, kept }))
    gone, kept = jq:enqueue("b"), jq:enqueue("a")
    jq:cancel(gone)
    jq:cancel(kept)
    assert.are.same({ "gone", "cancelled" }, jq:statuses({ gone, kept }))
    kept = jq:enqueue({ name = "a", max_retry = 0 })
    jq:fail(jq:take("a"))
    assert.are.equal("error", jq:status(kept))
  end)
  it("say it for jobs of a batch, and for what a finish picks", function()
    own("a", { done_max = 0 })
    local ids = jq:enqueue_many({ name = "a" }, 3)
    local jobs = jq:pick({ queues = "a", count = 2 })
    local reply = jq:call("finish", { worker = "worker", pick = { queues = "a" } },
      { id = jobs[1].id, token = jobs[1].token, type = "success" }, msgpack.NIL,
      { id = jobs[2].id, token = jobs[2].token, type = "success" }, msgpack.NIL)
    assert.are.same({ "done", "done" }, { reply[1], reply[2] })
    assert.are.same({ "gone", "gone", "running" }, jq:statuses(ids))
  end)
end)
