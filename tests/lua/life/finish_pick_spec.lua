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
    local function finish_and_pick(spec, ...)
      local reply = jq:call("finish", { worker = "w", pick = spec }, ...)
      local answers = { unpack(reply, 1, select("#", ...) / 2) }
      return answers, space.picked(reply, #answers + 1)
    end
    it("with the token of the pick that gave the job does not start that again", function()
      local id = jq:enqueue("a")
      local job = jq:take({ queues = "a", request = "always the same" })
      local reply = jq:call("finish", { worker = "w", pick = { queues = "a", request = "always the same" } },
        outcome(job), NIL)
      assert.are.equal("done", reply[1])
      assert.are.equal("done", jq:status(id))
      assert.are.same({}, jq:audit())
    end)
    it("repeated with its outcomes gives the same answers and jobs", function()
      jq:enqueue_all("a", "a", "a")
      local job = jq:take("a")
      local function once()
        return { finish_and_pick({ queues = "a", request = "r" }, outcome(job), NIL) }
      end
      local first, again = once(), jq:unchanged(once)
      first[2].next_ms = 0 -- nobody has looked for more
      assert.are.same(first, again)
    end)
  end)
end)
