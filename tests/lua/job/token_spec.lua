-- (id, token) is what fences an attempt: the number alone will not do.
local space = require "support.space"

describe("a token", function()
  local jq = space.each()
  --- The same attempt with other digits, as a stranger may guess them.
  local function forged(job)
    local digit = job.token:sub(-1) == "0" and "1" or "0"
    return { id = job.id, token = job.token:sub(1, -2) .. digit }
  end
  local function random_of(job)
    return job.token:match("%-(.*)$")
  end

  it("is the attempt's number and twelve digits, which all that one call starts share", function()
    jq:enqueue_all("a", "a")
    local jobs = jq:pick({ queues = "a", count = 2 })
    assert.is_truthy(jobs[1].token:find("^1%-" .. ("[0-9a-f]"):rep(12) .. "$"))
    assert.are.equal(jobs[1].token, jobs[2].token)
    jq:release(jobs[1])
    jq:pass(0.001)
    local again = jq:take("a")
    assert.are.equal("2-", again.token:sub(1, 2))
    assert.are_not.equal(random_of(jobs[1]), random_of(again))
  end)
  it("of an attempt that runs has to be whole", function()
    jq:enqueue("a")
    local job = jq:take("a")
    jq:unchanged(function()
      local short, long = { id = job.id, token = "1-" }, { id = job.id, token = job.token .. "0" }
      for _, wrong in ipairs({ forged(job), short, long }) do
        assert.are.equal("LOST", jq:succeed(wrong))
        assert.are.equal("LOST", jq:fail(wrong))
        assert.are.equal("LOST", jq:heartbeat(wrong))
        assert.are.equal("LOST", jq:release(wrong))
      end
    end)
    assert.are.equal("done", jq:succeed(job))
  end)
  it("of the last attempt has to be whole to get its answer again", function()
    jq:enqueue_all("a", { name = "b", max_retry = 0 }, "c", "d")
    local done, failed, released, cancelled = jq:take("a"), jq:take("b"), jq:take("c"), jq:take("d")
    local function answers(as)
      return { jq:succeed(as(done)), jq:fail(as(failed)), jq:release(as(released)), jq:heartbeat(as(cancelled)) }
    end
    jq:succeed(done)
    jq:fail(failed)
    jq:release(released)
    jq:cancel(cancelled.id)
    jq:unchanged(function()
      assert.are.same({ "LOST", "LOST", "LOST", "LOST" }, answers(forged))
      assert.are.same({ "done", "error", "queued", "CANCELLED" }, answers(function(job)
        return job
      end))
    end)
  end)
  it("is shown to nobody who did not start the job", function()
    jq:set({ events_max = 10 })
    local id = jq:enqueue({ name = "a", tags = { "t" } })
    local random = random_of(jq:take("a"))
    for _, call in ipairs({ { "get", id }, { "jobs", {} }, { "history", id }, { "explain", id }, { "workers", {} } }) do
      local reply = jq:call_list(call[1], { unpack(call, 2) })
      reply = type(reply) == "table" and table.concat(reply) or reply
      assert.is_nil(reply:find(random, 1, true))
    end
    for _, entry in ipairs(jq:redis("XRANGE", jq.name .. ":events", "-", "+")) do
      assert.is_nil(entry[2][2]:find(random, 1, true))
    end
  end)
  it("is another in another namespace at the same moment", function()
    local other = space.new()
    jq:enqueue("a")
    other:enqueue("a")
    assert.are_not.equal(jq:take("a").token, other:take("a").token)
    other:close()
  end)
end)

describe("a token by the server's clock", function()
  local jq = space.each({ clock = "server" })

  it("is never given out again, though the start itself was forgotten", function()
    local id = jq:enqueue("a")
    local before = jq:snapshot()
    local lost = jq:take("a")
    -- A replica that knew nothing of the start takes over.
    for _, key in ipairs(jq:keys()) do
      jq:redis("DEL", key)
    end
    for key, dump in pairs(before) do
      jq:redis("RESTORE", key, 0, dump)
    end
    local job = jq:take("a")
    assert.are.same({ id, lost.attempt }, { job.id, job.attempt })
    assert.are_not.equal(lost.token, job.token)
    assert.are.equal("LOST", jq:succeed(lost))
    assert.are.equal("LOST", jq:heartbeat(lost))
    assert.are.equal("done", jq:succeed(job))
    assert.are.equal("LOST", jq:succeed(lost))
  end)
end)
