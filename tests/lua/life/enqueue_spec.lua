local keys_of = require "support.keys"
local msgpack = require "support.msgpack"
local space = require "support.space"

local NIL = msgpack.NIL

describe("enqueue", function()
  local jq = space.each()

  describe("a job", function()

    it("takes every field at its limits", function()
      for _, spec in ipairs({
        { name = "n", priority = -2147483648 }, { name = "n", priority = 2147483647 },
        { name = "n", max_retry = 0 }, { name = "n", max_retry = 2147483647 },
        { name = "n", timeout = 0.001 }, { name = "n", timeout = 4000000 },
        { name = "n", retry_base = 0 }, { name = "n", retry_base = 1e10 },
        { name = "n", retry_cap = 0 }, { name = "n", retry_cap = 1e10 },
        { name = "n", retry_jitter = 0 }, { name = "n", retry_jitter = 1 },
        { name = "n", keep_result = true }, { name = ("n"):rep(255) }, { name = "n", queue = ("q"):rep(255) },
      }) do
        local document = jq:get(jq:enqueue(spec))
        for field, value in pairs(spec) do
          assert.are.equal(value, document[field])
        end
      end
    end)

    it("rounds a timeout up to a whole millisecond", function()
      assert.are.equal(0.002, jq:get(jq:enqueue({ name = "n", timeout = 0.0011 })).timeout)
    end)
  end)

  describe("an argument", function()
    local function survives(blob)
      jq:enqueue("mail", blob)
      assert.are.equal(blob, jq:take("mail").blob)
    end
    it("may hold bin, ext and numbers beyond 2^53", function()
      survives("\147\196\3abc\212\1x\207\255\255\255\255\255\255\255\255")
    end)
    it("keeps integers in a wider form than they need", function()
      survives("\211\0\0\0\0\0\0\0\1")
    end)
  end)

  describe("ids", function()
    it("stay in order when the clock is set back", function()
      local first = jq:enqueue("a")
      jq:pass(-3600)
      local second = jq:enqueue("a")
      jq:pass(1)
      local third = jq:enqueue("a")
      assert.is_true(first < second and second < third)
      assert.are.same({ first, second, third }, jq:pick_ids({ queues = "a", count = 5 }))
    end)
    it("are not given twice within a millisecond", function()
      local seen = {}
      for _ = 1, 50 do
        local id = jq:enqueue("a")
        assert.is_nil(seen[id])
        seen[id] = true
      end
    end)
    it("do not repeat when a failover lost the last of them", function()
      local id = jq:enqueue("a")
      local keys = keys_of(jq.name)
      local last = jq:redis("GET", keys.SEQ)
      jq:pass(0.001)
      local lost = jq:enqueue("a")
      jq:redis("SET", keys.SEQ, last)
      jq:pass(0.001)
      local later = jq:enqueue("a")
      assert.is_true(id < lost and lost < later)
    end)
  end)

  describe("expires_in", function()
    local function reason(id)
      local document = jq:get(id)
      return document.status, document.reason
    end
    it("counts from enqueueing, however late the job became due", function()
      local id = jq:enqueue({ name = "a", expires_in = 10, delay = 9 })
      jq:pass(9)
      jq:settle()
      assert.are.equal("queued", jq:status(id))
      jq:pass(1)
      jq:settle()
      assert.are.equal("error", jq:status(id))
    end)
    it("ends a job that is due at the same moment", function()
      local id = jq:enqueue({ name = "a", expires_in = 10, delay = 10 })
      jq:pass(10)
      jq:settle()
      assert.are.same({ "error", "expired" }, { reason(id) })
    end)
  end)

  describe("max_waiting", function()
    it("counts scheduled and retrying jobs", function()
      jq:queue({ name = "a", max_waiting = 2 })
      jq:enqueue("a")
      jq:fail(jq:take("a"))
      jq:enqueue({ name = "a", delay = 5 })
      jq:refuses("FULL", "enqueue", { name = "a" }, NIL)
    end)
  end)
end)
