-- Constraints that limit how many jobs run at once.
local limits = require "support.limits"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("lets", function()
    it("so many jobs run at once", function()
      limit(2)
      local ids = jq:enqueue_all("a", "a", "a", "a")
      assert.are.same({ ids[1], ids[2] }, jq:start_ids("a"))
      assert.are.same({}, jq:start_ids("a"))
      assert.are.same({ queued = 2, running = 2 }, jq:counts("a"))
    end)
    it("the next in when one ends", function()
      limit(2)
      local ids = jq:enqueue_many({ name = "a" }, 5)
      local jobs = jq:start("a")
      jq:succeed(jobs[2])
      assert.are.same({ ids[3] }, jq:start_ids("a"))
      jq:succeed(jobs[1])
      assert.are.same({ ids[4] }, jq:start_ids("a"))
    end)
    it("as many in as outcomes of one finish make room for", function()
      limit(3)
      local ids = jq:enqueue_many({ name = "a" }, 9)
      local jobs = jq:start("a")
      jq:call("finish", { worker = "worker" },
        { id = jobs[1].id, token = jobs[1].token, type = "success" }, msgpack.NIL,
        { id = jobs[3].id, token = jobs[3].token, type = "failure" }, msgpack.NIL)
      assert.are.same({ ids[4], ids[5] }, jq:start_ids("a"))
    end)
    it("a job in with the pick of the finish that made its room", function()
      limit(1)
      local ids = jq:enqueue_all("a", "a")
      local job = jq:start_one("a")
      local reply = jq:call("finish", { worker = "worker", pick = { queues = "a" } },
        { id = job.id, token = job.token, type = "success" }, msgpack.NIL)
      assert.are.same({ ids[2] }, space.ids(space.picked(reply, 2)))
      assert.are.equal(1, jq:constraint("c").running)
    end)
    it("no job in with the pick of a finish that was LOST", function()
      limit(1)
      jq:enqueue_all("a", "a")
      local job = jq:start_one("a")
      local reply = jq:call("finish", { worker = "worker", pick = { queues = "a" } },
        { id = job.id, token = "2-0123456789ab", type = "success" }, msgpack.NIL)
      assert.are.equal("LOST", reply[1])
      assert.are.same({}, space.ids(space.picked(reply, 2)))
    end)
  end)

  describe("holds a job that", function()
    it("shows as queued", function()
      limit(1)
      local ids = jq:enqueue_all("a", "a")
      jq:start("a")
      local document = jq:get(ids[2])
      assert.are.same({ "queued", 0 }, { document.status, document.attempt })
      assert.is_nil(document.started_ms)
      assert.are.equal("queued", jq:call("watch", ids[2])[1])
      assert.are.equal("queued", jq:call("result", ids[2])[1])
    end)
    it("counts for max_waiting", function()
      limit(1)
      jq:queue({ name = "a", max_waiting = 2 })
      jq:enqueue("a")
      jq:start("a")
      jq:enqueue_all("a", "a")
      jq:pick("a") -- has looked at them, and left them held
      jq:refuses("FULL jobs[0].queue", "enqueue", { name = "a" }, msgpack.NIL)
    end)
    it("was delayed starts when it is due and there is room", function()
      limit(1)
      jq:enqueue("a")
      local job = jq:start_one("a")
      local id = jq:enqueue({ name = "a", delay = 5 })
      jq:pass(5)
      assert.are.same({}, jq:start_ids("a"))
      assert.are.equal("queued", jq:status(id))
      jq:succeed(job)
      assert.are.same({ id }, jq:start_ids("a"))
    end)
    it("waits for a retry leaves its room to others, and is held when it is due", function()
      limit(1)
      local ids = jq:enqueue_all({ name = "a", retry_base = 2, retry_jitter = 0 }, "a")
      jq:fail(jq:start_one("a"))
      local second = jq:start_one("a")
      assert.are.equal(ids[2], second.id)
      jq:pass(2)
      assert.are.same({}, jq:start_ids("a"))
      assert.are.equal("queued", jq:status(ids[1]))
      jq:succeed(second)
      assert.are.same({ ids[1] }, jq:start_ids("a"))
    end)
  end)

  describe("and request tokens", function()
    it("gives the same jobs again, and takes no room twice", function()
      limit(2)
      jq:enqueue_many({ name = "a" }, 5)
      local spec = { queues = "a", count = 5, request = "r" }
      local first = jq:pick_ids(spec)
      assert.are.equal(2, #first)
      assert.are.same(first, jq:unchanged(function()
        return jq:pick_ids(spec)
      end))
      assert.are.equal(2, jq:constraint("c").running)
    end)
    it("enqueues once into a lane", function()
      limit(1)
      local function enqueue()
        return jq:call("enqueue", { request = "r" }, { name = "a" }, msgpack.NIL)
      end
      local first = enqueue()
      assert.are.same(first, enqueue())
      assert.are.same({ queued = 1 }, jq:counts("a"))
    end)
  end)

  describe("finds jobs that come together where they would be had they come one by one:", function()
    local constraints = {
      ["of a name"] = { { { concurrency = 2 }, { name = "a" } } },
      ["of a value"] = { { { concurrency = 2 }, { ["argument.v"] = { lt = 3 } } } },
      ["by value"] = { { { concurrency = 2, by = "argument.v" }, { name = "a", ["argument.v"] = { lt = 4 } } } },
      ["with costs"] = {
        { { rate = { limit = 9, period = 1 }, by = "argument.v", cost = "argument.cost" }, { name = "a" } },
      },
      ["of several constraints"] = {
        { { concurrency = 2, by = "argument.v" }, { ["argument.v"] = { lt = 4 } } },
        { { concurrency = 2 }, { priority = { lt = 2 }, ["argument.v"] = { gt = 1 } } },
      },
    }

    --- Jobs and where they stand. Which lanes are to be looked at may differ: by entries that lead to the same.
    local function stored(where)
      local held = {}
      for key, value in pairs(where:snapshot()) do
        local short = key:sub(#where.name + 2)
        if short:find("^[jaqw]:") or short:find("^lane:") or short == "seq" then
          held[short] = value
        end
      end
      return held
    end

    for what, list in pairs(constraints) do
      it(what, function()
        local spaces = { jq, space.new(), space.new() }
        for _, each in ipairs(spaces) do
          for i, constraint in ipairs(list) do
            local spec = { id = "c" .. i }
            for field, value in pairs(constraint[1]) do
              spec[field] = value
            end
            each:constrain(spec, constraint[2])
          end
          -- From the second on, jobs are ordinary.
          each:enqueue("a", { v = 1, cost = 1 })
          each:enqueue("a", { v = 1, cost = 1 })
        end
        local batch = {}
        for i = 1, 100 do
          batch[2 * i - 1] = { name = "a", priority = i * 7 % 4 }
          batch[2 * i] = { v = i * 11 % 6, cost = i * 5 % 3 }
        end
        for i = 1, 100 do
          jq:call("enqueue", batch[2 * i - 1], batch[2 * i])
        end
        local ids = spaces[2]:call_list("enqueue", batch)
        table.insert(batch, 1, { request = "token" }) -- the general path
        assert.are.same(ids, spaces[3]:call_list("enqueue", batch))
        local singly = stored(jq)
        assert.are.same({}, space.changes(singly, stored(spaces[2])))
        assert.are.same({}, space.changes(singly, stored(spaces[3])))
        assert.are.equal(102, spaces[2]:counts("a").queued)
        local started = jq:start_ids("a")
        for i = 2, 3 do
          assert.are.same(started, spaces[i]:start_ids("a"))
          spaces[i]:close()
        end
      end)
    end
  end)

  describe("when the clock", function()
    it("is set back keeps its count", function()
      limit(1)
      local ids = jq:enqueue_all("a", "a", "a")
      local job = jq:start_one("a")
      jq:pass(-3600)
      assert.are.same({}, jq:start_ids("a"))
      jq:succeed(job)
      job = jq:start_one("a")
      assert.are.equal(ids[2], job.id)
      jq:pass(7200)
      assert.are.same({ ids[3] }, jq:start_ids("a"))
      assert.are.equal("retrying", jq:status(ids[2]))
    end)
    it("jumps ahead gives room back once for each lease", function()
      limit(3)
      local ids = jq:enqueue_many({ name = "a", max_retry = 0 }, 9)
      jq:start("a")
      jq:pass(86400)
      assert.are.same({ ids[4], ids[5], ids[6] }, jq:start_ids("a"))
    end)
  end)
end)
