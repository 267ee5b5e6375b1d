local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"

describe("pick", function()
  local jq = space.each()

  describe("a job that is picked", function()
    it("has a document of any number of members", function()
      -- More than workers are told of today: all that a job can have.
      local source, changed = server.source("settable", "pick"):gsub('"max_runtime", ',
        '%0"tags", "unique", "unique_for", "retry_base", "retry_cap", "retry_jitter", ')
      assert.are.equal(1, changed)
      local told = { max_runtime = 5, headers = { tenant = "é" }, tags = { "x", "y" }, unique = "k", unique_for = 5,
        retry_base = 1, retry_cap = 2, retry_jitter = 0.5 }
      local first = jq:enqueue("a")
      local spec = { name = "b", depends = { first } }
      for field, value in pairs(told) do
        spec[field] = value
      end
      told.id = jq:enqueue(spec)
      jq:succeed(jq:take("a"))
      local wish = msgpack.pack({ worker = "w", queues = "b" })
      local document = jq:redis("EVAL", source, 2, jq.name, jq.name .. ":meta", wish)[2]
      local members = 0
      for field, value in pairs(msgpack.unpack(document)) do
        members = members + 1
        assert.are.same(told[field] or value, value)
      end
      assert.are.equal(17, members)
    end)
  end)

  describe("order", function()
    it("holds at the ends of 32 bits", function()
      local ids = jq:enqueue_all({ name = "a", priority = 2147483647 }, { name = "a",
        priority = -2147483648 }, { name = "a", priority = 2147483646 })
      assert.are.same({ ids[2], ids[3], ids[1] }, jq:pick_ids({ queues = "a", count = 4 }))
    end)
    it("is by age where priorities are equal, whatever the queues", function()
      local ids = jq:enqueue_all("b", "c", "a", "b", "a", "c")
      assert.are.same(ids, jq:pick_ids({ queues = "*", count = 6 }))
    end)
  end)
  it("does not end more than some hundred expired jobs in one call", function()
    jq:enqueue_many({ name = "a", expires_in = 1 }, 1000)
    jq:pass(1)
    local jobs = jq:pick("a")
    assert.are.same({ 0, 0 }, { jobs.next_ms, #jobs })
    assert.is_true(jq:counts("a").error <= 300)
    local calls = 0
    repeat
      jobs = jq:pick("a")
      calls = calls + 1
    until jobs.next_ms ~= 0 or calls > 20
    assert.are.equal(1000, jq:counts("a").error)
  end)
end)
