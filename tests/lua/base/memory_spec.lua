local msgpack = require "support.msgpack"
local space = require "support.space"

local NIL = msgpack.NIL

describe("when Redis is out of memory", function()
  local jq
  local function set_limit(bytes)
    jq:redis("CONFIG", "SET", "maxmemory", bytes)
  end
  --- The clock's key is the test's own; it needs memory like any other.
  local function pass(seconds)
    set_limit(0)
    jq:pass(seconds)
    set_limit(1)
  end

  local jobs, scheduled, worker
  before_each(function()
    jq = space.new()
    worker = jq:register({ url = "http://w/", queues = "pushed", max_jobs = 5 })
    jq:enqueue_many({ name = "a", keep_result = true, timeout = 5 }, 20)
    scheduled = jq:enqueue({ name = "a", delay = 3 })
    jq:enqueue_many({ name = "pushed" }, 3)
    jobs = jq:pick({ queues = "a", count = 10 })
    set_limit(1)
  end)
  after_each(function()
    set_limit(0)
    jq:close()
  end)

  it("enqueue is refused before its request token is noted", function()
    jq:refuses("OOM", "enqueue", { request = "r" }, { name = "a" }, NIL)
    set_limit(0)
    assert.are.equal(2, #jq:call("enqueue", { request = "r" }, { name = "a" }, NIL))
  end)
  for script, spec in pairs({ register = { name = "w", queues = "a" }, queue = { name = "new" } }) do
    it(script .. " is refused", function()
      jq:refuses("OOM", script, spec)
    end)
  end
  it("pick still gives jobs", function()
    assert.are.equal(5, #jq:pick({ queues = "a", count = 5 }))
  end)
  it("pick still notes a token and a sleeper", function()
    assert.are.equal(1, #jq:pick({ queues = "a", request = "r" }))
    assert.are.equal(1, #jq:pick({ queues = "a", request = "r" }))
    jq:sleep("w", "c", "nothing")
  end)
  it("assign still gives jobs", function()
    assert.are.equal(3, #jq:assign())
  end)
  it("finish still takes outcomes, and keeps results", function()
    assert.are.equal("done", jq:succeed(jobs[1], "\163yes"))
    assert.are.equal("retrying", jq:fail(jobs[2], { message = "no" }))
    assert.are.same({ "done", "\163yes" }, jq:call("result", jobs[1].id))
  end)
  it("finish still fetches the next job", function()
    local reply = jq:call("finish", { worker = "w", pick = { queues = "a" } },
      { id = jobs[1].id, token = jobs[1].token, type = "success" }, NIL)
    assert.are.equal("done", reply[1])
    assert.are.equal(1, #space.picked(reply, 2))
  end)
  it("heartbeat still renews leases", function()
    assert.are.equal(5000, jq:heartbeat(jobs[1]))
    assert.are.same({}, jq:call("heartbeat", { worker = worker, jobs = {} }))
  end)
  it("release still gives jobs back", function()
    assert.are.equal("queued", jq:release(jobs[1]))
    assert.are.equal("scheduled", jq:release(jobs[2], 5))
  end)
  it("refuse still gives jobs back", function()
    local job = jq:assign()[1]
    assert.are.same({ "queued" }, jq:call("refuse", { worker = worker, jobs = { jq:held(job) },
      why = "busy" }))
  end)
  it("unregister still gives jobs back", function()
    jq:assign()
    assert.are.equal(3, jq:call("unregister", { worker = worker }))
  end)
  it("cancel still cancels", function()
    assert.are.equal("running", jq:cancel(jobs[1].id))
    assert.are.equal("scheduled", jq:cancel(scheduled))
  end)
  it("tick still moves what is due", function()
    pass(5)
    jq:tick()
    assert.are.equal("queued", jq:status(scheduled))
    assert.are.equal("retrying", jq:status(jobs[1].id))
  end)
  it("config can still make room", function()
    jq:succeed(jobs[1])
    jq:set({ done_ttl = 0, result_ttl = 1 })
    pass(10)
    jq:settle()
  end)
  it("watching and reading still work", function()
    assert.are.same({ "running" }, jq:call("watch", jobs[1].id))
    assert.are.equal("running", jq:status(jobs[1].id))
    assert.are.equal(10, jq:counts("a").running)
    assert.is_truthy(jq:worker(worker))
    assert.are.same({}, jq:audit())
  end)
  it("a namespace that is set up already can be set up again", function()
    local ok, message = pcall(jq.call, jq, "setup")
    assert.is_true(ok or message:find("^OOM") ~= nil)
  end)
  it("a full system can be drained to the last job", function()
    for _, job in ipairs(jobs) do
      assert.are.equal("done", jq:succeed(job))
    end
    pass(3)
    local count = 0
    while true do
      local job = jq:take("a")
      if not job then
        break
      end
      jq:succeed(job)
      count = count + 1
    end
    assert.are.equal(11, count)
  end)
end)
