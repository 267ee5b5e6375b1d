local msgpack = require "support.msgpack"
local space = require "support.space"

describe("what follows a success", function()
  local jq = space.each()
  local function started(queues, spec)
    if type(queues) == "table" then
      queues, spec = nil, queues
    end
    jq:enqueue(spec or "a")
    return jq:take(queues or "a")
  end
  local function move(job, more, argument)
    return jq:succeed(job, argument, { move = more })
  end

  describe("moving on", function()
    it("leaves nothing behind that hides it from a pick over all queues", function()
      for _, pattern in ipairs({ "*", { "a", "*" }, "m*" }) do
        local job = started("a*", { name = "x", queue = "ax" })
        move(job, { queue = "mail" })
        assert.are.same({ job.id }, jq:pick_ids(pattern))
      end
    end)
  end)

  it("is taken out of all its sets where it comes under a limit and is picked at once", function()
    jq:call("constrain", { id = "c", concurrency = 9 }, msgpack.pack({ priority = { ge = 0 } }))
    local job = started()
    jq:call("finish", { worker = "worker", pick = { queues = "b" } },
      { id = job.id, token = job.token, type = "success", move = { queue = "b" } }, msgpack.NIL)
    assert.are.equal("running", jq:status(job.id))
    assert.are.same({}, jq:audit())
  end)

  describe("enqueueing", function()
    describe("with a pick of one queue", function()
      local function finish_and_pick(job, ...)
        local reply = jq:call("finish", { worker = "worker", pick = { queues = "b" } },
          { id = job.id, token = job.token, type = "success", enqueue = 1 }, msgpack.NIL, ...)
        return reply[1][2], jq:note(space.picked(reply, 2))[1]
      end
      it("frees a job that depends on the one picked, when that is done", function()
        local job = started()
        local other = jq:enqueue("b")
        local follower, picked = finish_and_pick(job, { name = "c", depends = { other } }, msgpack.NIL)
        assert.are.equal(other, picked.id)
        jq:succeed(picked)
        assert.are.equal(follower, jq:take("c").id)
      end)
      it("gives the worker what a second of the same unique key brought", function()
        local job = started()
        local other = jq:enqueue({ name = "b", unique = "k" })
        local second = { name = "b", unique = "k", if_exists = "replace", priority = 3 }
        local id, picked = finish_and_pick(job, second, "\9")
        assert.are.same({ other, other, 3, "\9" }, { id, picked.id, picked.priority, picked.blob })
        assert.are.equal(3, jq:get(other).priority)
      end)
    end)
  end)
end)
