-- Outcomes together with a pick of the next jobs, and what they do to a registered worker.
local msgpack = require "support.msgpack"
local space = require "support.space"

local NIL = msgpack.NIL

describe("finish", function()
  local jq = space.each()
  local function outcome(job, more)
    return space.with({ id = job.id, token = job.token, type = "success" }, more)
  end

  describe("pick", function()
    it("with the token of the pick that gave the job does not start that again", function()
      local id = jq:enqueue("a")
      local job = jq:take({ queues = "a", request = "always the same" })
      local reply = jq:call("finish", { worker = "w", pick = { queues = "a", request = "always the same" } },
        outcome(job), NIL)
      assert.are.equal("done", reply[1])
      assert.are.equal("done", jq:status(id))
      assert.are.same({}, jq:audit())
    end)
  end)
end)
