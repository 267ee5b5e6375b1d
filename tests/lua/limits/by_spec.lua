-- Constraints with `by`: each value has room of its own.
local limits = require "support.limits"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("with by", function()
    it("gives each value room of its own", function()
      limit(2, nil, { by = "argument.customer" })
      local ids = jq:enqueue_each("a", { customer = 1 }, { customer = 1 }, { customer = 2 }, { customer = 1 },
        { customer = 2 }, { customer = 3 }, { customer = 2 })
      local jobs = jq:start("a")
      assert.are.same({ ids[1], ids[2], ids[3], ids[5], ids[6] }, space.ids(jobs))
      jq:succeed(jobs[3])
      assert.are.same({ ids[7] }, jq:start_ids("a"))
      jq:succeed(jobs[1])
      assert.are.same({ ids[4] }, jq:start_ids("a"))
    end)
    it("keeps combinations apart that look alike when strung together", function()
      limit(1, nil, { by = { "argument.x", "argument.y" } })
      local ids = jq:enqueue_each("a", { x = "a", y = "bc" }, { x = "ab", y = "c" }, { x = "a,b", y = "c" },
        { x = "a", y = "b,c" }, { x = "a\0b", y = "c" }, { x = "a", y = "b\0c" }, { x = "", y = "abc" },
        { x = "abc", y = "" }, { x = "a:b", y = "c" }, { x = "a", y = "b:c" }, { x = "a|b", y = "c" },
        { x = "a", y = "b|c" }, { x = 1, y = 23 }, { x = 12, y = 3 }, { y = "a" }, { x = "a" })
      assert.are.same(ids, jq:start_ids("a"))
    end)
    it("lets jobs share a key where the path leads nowhere, and with those whose value is nil", function()
      limit(1, nil, { by = "argument.to.customer" })
      local ids = jq:enqueue_each("a", {}, { to = 5 }, { to = { customer = msgpack.raw("\192") } }, "\192",
        msgpack.pack("to"), { to = { { customer = 1 } } }, "\161", { to = { customer = 1 } })
      local jobs = jq:start("a")
      assert.are.same({ ids[1], ids[8] }, space.ids(jobs))
      for i = 2, 7 do
        jq:succeed(jobs[1])
        jobs = jq:start("a")
        assert.are.same({ ids[i] }, space.ids(jobs))
      end
    end)
    it("reads the value at enqueueing as it was given, whatever it costs to read", function()
      limit(1, nil, { by = "argument.deep" })
      local deep = ("\145"):rep(20000) .. "\1"
      local ids = jq:enqueue_each("a", "\129\164deep" .. deep, "\129\164deep" .. deep, { deep = 1 })
      assert.are.same({ ids[1], ids[3] }, jq:start_ids("a"))
    end)
  end)
end)
