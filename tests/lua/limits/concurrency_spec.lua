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
    it("a job in with the pick of the finish that made its room", function()
      limit(1)
      local ids = jq:enqueue_all("a", "a")
      local job = jq:start_one("a")
      local reply = jq:call("finish", { worker = "worker", pick = { queues = "a" } },
        { id = job.id, token = job.token, type = "success" }, msgpack.NIL)
      assert.are.same({ ids[2] }, space.ids(space.picked(reply, 2)))
      assert.are.equal(1, jq:constraint("c").running)
    end)
  end)

  describe("holds a job that", function()
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
end)
