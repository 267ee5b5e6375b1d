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
