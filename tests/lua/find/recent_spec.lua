local listing = require "support.listing"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("jobs", function()
  local jq = space.each()

  local function list(where, more)
    return listing.ids(jq, where, more)
  end

  describe("with recent", function()
    it("are what runs, then what ended last, then what waits, over all queues", function()
      local ids = {}
      for i, name in ipairs({ "b", "a", "c", "a", "b" }) do
        ids[i] = jq:enqueue({ name = name, keep_result = i % 2 == 0, max_retry = 0 })
        if i == 3 then
          jq:fail(jq:take(name))
        else
          jq:succeed(jq:take(name))
        end
        jq:pass(1)
      end
      jq:cancel(jq:enqueue("a"))
      local cancelled = list({ status = "cancelled" })[1]
      local retrying = jq:enqueue("a")
      jq:fail(jq:take("a"))
      local short = jq:enqueue({ name = "a", timeout = 5 })
      local long = jq:enqueue({ name = "b", timeout = 50 })
      jq:pick({ queues = { "a", "b" }, count = 2 })
      local waiting = jq:enqueue_all({ name = "c", priority = 1 }, "b", { name = "c", delay = 9 },
        { name = "a", delay = 3 })
      local blocked = jq:enqueue({ name = "b", depends = { waiting[1] } })
      local expected = {
        long, short, cancelled, ids[5], ids[4], ids[3], ids[2], ids[1], retrying, waiting[2], waiting[1], waiting[4],
        waiting[3], blocked,
      }
      for _, count in ipairs({ 1, 3, 100 }) do
        assert.are.same(expected, list({}, { recent = true, count = count }))
      end
      assert.are.same({ long, short, ids[3] }, list({ status = { "running", "error" } }, { recent = true }))
      assert.are.same({ short, cancelled, ids[4], ids[2], retrying, waiting[4] },
        list({ queue = "a" }, { recent = true, count = 1 }))
    end)
  end)

  it("have small arguments, though they are brief", function()
    jq:enqueue_each("a", msgpack.pack("12345678"), msgpack.pack("123456789"))
    local documents = listing.all(jq, { brief = true, argument_max = 9 })
    assert.are.same({ "12345678" }, { documents[1].argument, documents[2].argument })
    assert.is_nil(documents[1].result)
    assert.are.equal("123456789", listing.all(jq, { argument_max = 0 })[2].argument)
  end)

  describe("with looked", function()
    it("look at a bounded number, however few match", function()
      local specs = {}
      for i = 1, 1000 do
        specs[i] = { name = "a" }
      end
      for _ = 1, 3 do
        jq:enqueue_all(unpack(specs))
      end
      local looked, cursor, calls = 0, nil, 0
      repeat
        local reply = jq:call("jobs", { where = { match = { ["argument.x"] = 1 } }, looked = true, cursor = cursor })
        cursor, looked, calls = reply[1], looked + reply[2], calls + 1
        assert.is_nil(reply[3])
      until cursor == ""
      assert.are.equal(3000, looked)
      assert.is_true(calls > 2 and calls < 20, calls)
    end)
  end)

  describe("where", function()
    it("names who runs it or ran it last", function()
      local ids = jq:enqueue_all("a", "a", "a", "a")
      jq:take({ queues = "a", worker = "one" })
      jq:succeed(jq:take({ queues = "a", worker = "two" }))
      jq:release(jq:take({ queues = "a", worker = "two" }), 60)
      assert.are.same({ ids[1] }, list({ worker = "one" }))
      assert.are.same({ ids[3], ids[2] }, list({ worker = "two" }))
      assert.are.same({}, list({ worker = "three" }))
    end)
    it("says for how long it ran, or runs", function()
      local ids = jq:enqueue_all({ name = "a", keep_result = true }, "a", { name = "a", max_retry = 0 }, "a", "a", "a")
      for seconds = 1, 4 do
        local lease = jq:take("a")
        jq:pass(seconds)
        if seconds == 3 then
          jq:fail(lease)
        elseif seconds < 3 then
          jq:succeed(lease)
        else
          jq:cancel(ids[4], true)
        end
      end
      jq:take("a")
      jq:pass(2)
      assert.are.same({ ids[5], ids[1], ids[2], ids[3], ids[4] }, list({ slower_ms = 999 }))
      assert.are.same({ ids[3], ids[4] }, list({ slower_ms = 2000 }))
      assert.are.same({ ids[4] }, list({ slower_ms = 3999 }))
      assert.are.same({}, list({ slower_ms = 4000 }))
      jq:pass(10)
      assert.are.same({ ids[5] }, list({ slower_ms = 4000 }))
      assert.are.same({}, list({ slower_ms = 1, status = "queued" }))
    end)
    it("asks for a text in the argument", function()
      local ids = jq:enqueue_each("a", { customer = "acme ltd" }, { customer = "other", note = "for acme" }, 7)
      assert.are.same({ ids[1], ids[2] }, list({ argument = "acme" }))
      assert.are.same({ ids[1] }, list({ argument = "acme ltd" }))
      assert.are.same({}, list({ argument = "a%w+" }))
    end)
  end)
end)
