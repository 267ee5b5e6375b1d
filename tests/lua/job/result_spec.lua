local msgpack = require "support.msgpack"
local space = require "support.space"

describe("result", function()
  local jq = space.each()

  local function finished(blob, spec)
    spec = spec or {}
    spec.name, spec.keep_result = "a", true
    jq:enqueue(spec)
    local job = jq:take("a")
    jq:succeed(job, blob or "\163yes")
    return job.id
  end

  local function expired(id)
    jq:refuses("EXPIRED id: the result of job " .. id .. " is gone: it was read, or it expired", "result", id)
  end

  describe("that a job depends on", function()
    local function dependent(...)
      return jq:enqueue({ name = "b", depends = { ... } })
    end
    local function end_dependent()
      return jq:succeed(jq:take("b"))
    end
    local function pass()
      jq:pass(7200)
      jq:settle()
      assert.are.same({}, jq:audit())
    end

    it("stays until that has ended, whatever result_ttl says", function()
      local id = jq:enqueue({ name = "a", keep_result = true })
      dependent(id)
      dependent(id)
      jq:succeed(jq:take("a"), "\163yes")
      pass()
      assert.are.equal("yes", jq:get(id).result)
      assert.are.same({ "done", "\163yes" }, jq:call("result", id))
      end_dependent()
      pass()
      assert.are.same({ "done", "\163yes" }, jq:call("result", id))
      end_dependent()
      expired(id)
      jq:settle()
      assert.are.equal(0, jq:redis("EXISTS", jq.name .. ":o:" .. id))
      assert.are.same({ done = 1 }, jq:counts("a"))
      assert.are.same({}, jq:redis("KEYS", jq.name .. ":readers:*"))
      assert.are.same({}, jq:audit())
    end)
    it("stays while that runs", function()
      local id = finished()
      jq:enqueue({ name = "b", depends = { id }, timeout = 100000 })
      jq:take("b")
      pass()
      assert.are.same({ "done", "\163yes" }, jq:call("result", id))
    end)
    it("stays for one that comes to depend on it in the call in which it ends", function()
      jq:set({ done_max = 0 })
      jq:enqueue({ name = "a", keep_result = true })
      jq:enqueue("b")
      local first, second = jq:take("a"), jq:take("b")
      local function success(job, more)
        return msgpack.pack(space.with({ id = job.id, token = job.token, type = "success" }, more))
      end
      jq:call("finish", { worker = "worker" }, success(first), "\163yes",
        success(second, { resume = { depends = { first.id } } }), msgpack.NIL)
      pass()
      assert.are.same({ "done", "\163yes" }, jq:call("result", first.id))
      assert.are.same({}, jq:audit())
    end)
    it("stays also before anybody came by after its time", function()
      local id = finished()
      dependent(id)
      jq:pass(7200)
      assert.are.same({ "done", "\163yes" }, jq:call("result", id))
    end)
    it("is not given up by the first read with a result_grace of 0", function()
      jq:set({ result_grace = 0 })
      local id = finished()
      dependent(id)
      for _ = 1, 2 do
        assert.are.same({ "done", "\163yes" }, jq:call("result", id))
        jq:settle()
      end
      end_dependent()
      expired(id)
    end)
  end)
end)
