local matching = require "support.matching"
local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"

local NIL = msgpack.NIL

describe("pick", function()
  local jq = space.each()

  describe("a job that is picked", function()
    it("comes with its document and its argument", function()
      local id = jq:enqueue({ name = "mail", queue = "slow", priority = -3, timeout = 2.5 }, "\163abc")
      local reply = jq:call("pick", { worker = "w", queues = "slow" })
      local document = msgpack.unpack(reply[2])
      assert.is_truthy(document.token:find("^1%-%x%x%x%x%x%x%x%x%x%x%x%x$"))
      assert.are.same({ id = id, token = document.token, name = "mail", queue = "slow", priority = -3, attempt = 1,
        retry_count = 0, timeout = 2.5 }, document)
      assert.are.equal("\163abc", reply[3])
      assert.are.equal(3, #reply)
    end)
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
      assert.are.equal(#document + 1, matching.module("values.msgpack").skip(document, 1))
      local members = 0
      for field, value in pairs(msgpack.unpack(document)) do
        members = members + 1
        assert.are.same(told[field] or value, value)
      end
      assert.are.equal(17, members)
    end)
    it("runs", function()
      local id = jq:enqueue("a")
      jq:take({ queues = "a", worker = "the worker" })
      jq:pass(1)
      local document = jq:get(id)
      assert.are.same({ "running", "the worker", 1, space.START_MS, space.START_MS + 30000 },
        { document.status, document.worker_id, document.attempt, document.started_ms, document.due_ms })
    end)
    it("starts as attempt 2 after a failure", function()
      jq:enqueue({ name = "a", retry_base = 0 })
      jq:fail(jq:take("a"))
      local job = jq:take("a")
      assert.are.same({ 2, 1 }, { job.attempt, job.retry_count })
    end)
    it("starts as attempt 2 after it was given back, with no retry spent", function()
      jq:enqueue("a")
      jq:release(jq:take("a"))
      local job = jq:take("a")
      assert.are.same({ 2, 0 }, { job.attempt, job.retry_count })
    end)
  end)

  describe("order", function()
    it("is by priority, then by enqueueing", function()
      local ids = jq:enqueue_all({ name = "a", priority = 1 }, { name = "a" }, { name = "a", priority = -1 },
        "a")
      assert.are.same({ ids[3], ids[2], ids[4], ids[1] }, jq:pick_ids({ queues = "a", count = 4 }))
    end)
    it("holds at the ends of 32 bits", function()
      local ids = jq:enqueue_all({ name = "a", priority = 2147483647 }, { name = "a",
        priority = -2147483648 }, { name = "a", priority = 2147483646 })
      assert.are.same({ ids[2], ids[3], ids[1] }, jq:pick_ids({ queues = "a", count = 4 }))
    end)
    it("holds over the queues that are named", function()
      local ids = jq:enqueue_all({ name = "a", priority = 1 }, "b", { name = "c", priority = -1 }, "a", "b")
      assert.are.same({ ids[2], ids[4], ids[5], ids[1] }, jq:pick_ids({ queues = { "a", "b" }, count = 9 }))
    end)
    it("keeps the old place of a job that was given back", function()
      local ids = jq:enqueue_all("a", "a")
      jq:release(jq:take("a"))
      assert.are.same(ids, jq:pick_ids({ queues = "a", count = 2 }))
    end)
  end)

  describe("order = ordered", function()
    it("takes everything of the first entry, then of the second", function()
      local ids = jq:enqueue_all("b", "a", "b", { name = "a", priority = 5 })
      assert.are.same({ ids[2], ids[4], ids[1], ids[3] },
        jq:pick_ids({ queues = { "a", "b" }, order = "ordered", count = 9 }))
    end)
  end)

  describe("order = round_robin", function()
    it("takes the entries in turn", function()
      local ids = jq:enqueue_all("a", "a", "a", "b", "b")
      local picked = {}
      for i = 1, 5 do
        picked[i] = jq:take({ queues = { "a", "b" }, order = "round_robin" }).id
      end
      assert.are.same({ ids[1], ids[4], ids[2], ids[5], ids[3] }, picked)
    end)
    it("passes over entries that are empty", function()
      local ids = jq:enqueue_all("c", "c")
      assert.are.same(ids, jq:pick_ids({ queues = { "a", "b", "c" }, order = "round_robin", count = 3 }))
    end)
  end)

  describe("order = shuffled", function()
    it("does not always begin with the same entry", function()
      for _, name in ipairs({ "a", "b", "c" }) do
        jq:enqueue_many({ name = name }, 40)
      end
      local seen = {}
      for _ = 1, 40 do
        seen[jq:take({ queues = { "a", "b", "c" }, order = "shuffled" }).name] = true
      end
      assert.are.same({ a = true, b = true, c = true }, seen)
    end)
  end)

  describe("queues", function()
    it("may be all", function()
      local ids = jq:enqueue_all("a", "b")
      assert.are.same(ids, jq:pick_ids({ queues = "*", count = 5 }))
    end)
    it("may not be known yet", function()
      assert.are.same({}, jq:pick_ids("nobody.knows"))
      assert.are.same({}, jq:pick_ids({ "nobody.knows", "nor.this" }))
      assert.are.same({}, jq:pick_ids("nobody.*"))
    end)
    it("named twice give each job once", function()
      local ids = jq:enqueue_all("a", "a", "a")
      assert.are.same(ids, jq:pick_ids({ queues = { "a", "a" }, count = 5 }))
    end)
    it("may be 100", function()
      local names = {}
      for i = 1, 100 do
        names[i] = "q" .. i
      end
      assert.are.same({ jq:enqueue("q100") }, jq:pick_ids(names))
    end)
    it("that are paused give nothing", function()
      jq:enqueue_all("a", "b")
      jq:queue({ name = "a", paused = true })
      assert.are.same({}, jq:pick_ids("a"))
      assert.are.equal("b", jq:take({ "a", "b" }).name)
      assert.are.same({}, jq:pick_ids("*"))
    end)
  end)

  describe("count", function()
    it("is the most that is given", function()
      local ids = jq:enqueue_all("a", "a", "a")
      assert.are.same({ ids[1], ids[2] }, jq:pick_ids({ queues = "a", count = 2 }))
    end)
    it("may be 1000", function()
      local ids = jq:enqueue_many({ name = "a" }, 1001)
      local picked = jq:pick_ids({ queues = "a", count = 1000 })
      assert.are.equal(1000, #picked)
      assert.are.equal(ids[1000], picked[1000])
    end)
    it("of 1000 may come from many queues", function()
      for i = 1, 40 do
        jq:enqueue_many({ name = "q" .. i }, 30)
      end
      local picked = jq:pick_ids({ queues = "*", count = 1000 })
      assert.are.equal(1000, #picked)
      for i = 2, 1000 do
        assert.is_true(picked[i - 1] < picked[i])
      end
    end)
  end)

  describe("next_ms", function()
    it("is -1 when nothing is planned", function()
      assert.are.equal(-1, jq:pick("a").next_ms)
    end)
    it("is the time until a scheduled job", function()
      jq:enqueue({ name = "a", delay = 5 })
      jq:pass(1)
      assert.are.equal(4000, jq:pick("a").next_ms)
    end)
    it("is the time until a job expires", function()
      jq:enqueue({ name = "a", expires_in = 9 })
      assert.are.equal(9000, jq:pick("b").next_ms)
    end)
    it("is 0 when more is due than a pick moves", function()
      jq:enqueue_many({ name = "a", delay = 1 }, 150)
      jq:pass(1)
      assert.are.equal(0, jq:pick("b").next_ms)
    end)
  end)

  it("takes nothing when it is refused", function()
    jq:enqueue("a", NIL)
    jq:refuses("INVALID count", "pick", { worker = "w", queues = "a", count = -1 })
    assert.are.same({ queued = 1 }, jq:counts("a"))
  end)
end)
