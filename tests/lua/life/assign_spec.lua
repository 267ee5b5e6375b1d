local space = require "support.space"

describe("assign", function()
  local jq = space.each()

  it("gives a worker no more than max_jobs", function()
    jq:register({ url = "http://w/", max_jobs = 2 })
    jq:enqueue_all("a", "a", "a")
    assert.are.equal(2, #jq:assign())
    assert.are.equal(0, #jq:assign())
  end)
  it("gives the least loaded of two pools the job that both may have", function()
    local one = jq:register({ url = "http://w/1", queues = "a", max_jobs = 2 })
    local two = jq:register({ url = "http://w/2", queues = { "a", "b" }, max_jobs = 2 })
    jq:enqueue_many({ name = "a" }, 4)
    local held = { [one] = 0, [two] = 0 }
    for _, job in ipairs(jq:assign({ limit = 2 })) do
      held[job.to] = held[job.to] + 1
    end
    assert.are.same({ [one] = 1, [two] = 1 }, held)
  end)
  it("asks to be called again while a queue is sorted of which a worker refused names", function()
    local worker = jq:register({ url = "http://w/", queues = "a" })
    jq:enqueue({ name = "b", queue = "a" })
    jq:call("refuse", { worker = worker, jobs = { jq:held(jq:assign()[1]) }, why = "unknown" })
    jq:enqueue_many({ name = "a" }, 100)
    jq:queue({ name = "a", fair = { by = "name" } })
    local calls, reply = 0
    repeat
      calls = calls + 1
      reply = jq:call("assign", { master = "m" })
    until reply[1] ~= 0 or reply[2]
    assert.are.equal(7, #reply) -- next_ms and a job
    assert.is_true(calls > 1)
  end)
end)
