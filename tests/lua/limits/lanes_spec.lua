-- What is easy to get wrong where held jobs wait in lanes: room that one lane cannot use, better jobs that come
-- into a lane nobody looks at, and constraints that change under many lanes.
local limits = require "support.limits"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("held jobs", function()
  local jq = space.each()

  local LONG_S = limits.LONG_S

  local limit, tagged, tagged_each = limits.by_tags(jq)

  describe("of whatever name, value and priority", function()
    local NAMES = { "a:b", "1:x", "!q", "-q", "{x}", "q l", "日本", "ünï", "q\\", "l", "0", "2:!q", "q?[a]", "'\"" }

    it("wait in lanes of their own: queues", function()
      limit("c", 1)
      local ids = {}
      for i, name in ipairs(NAMES) do
        ids[i] = tagged({ "c" }, nil, { queue = name, priority = -i })
      end
      for i = #NAMES, 1, -1 do
        local jobs = jq:start(i % 2 == 0 and NAMES or "*")
        assert.are.same({ ids[i] }, space.ids(jobs))
        assert.are.same({}, jq:start_ids(NAMES))
        jq:succeed(jobs[1])
      end
    end)
    it("start in order over lanes, to the ends of 32 bits", function()
      limit("c", 1)
      limit("d", 5, { by = "argument.v" })
      local expected = {}
      for i, priority in ipairs({ -2147483648, -2147483647, -65536, -256, -1, 0, 1, 255, 65536, 16777216, 2147483646,
        2147483647 }) do
        expected[i] = { priority = priority, v = i }
      end
      for i = 1, #expected do -- in another order, each in its own lane
        local one = expected[i * 5 % #expected + 1]
        one.id = tagged({ "c", "d" }, { v = one.v }, { priority = one.priority })
      end
      for _, one in ipairs(expected) do
        local jobs = jq:start("q")
        assert.are.same({ one.id }, space.ids(jobs))
        jq:succeed(jobs[1])
      end
    end)
  end)

  describe("of better priority that come into a lane", function()
    it("start at once when what they need is open, unlike those that wait there", function()
      limit("c", 1)
      limit("d", 1)
      tagged({ "c", "d" })
      local job = jq:start_one("q")
      tagged({ "c", "d" })
      assert.are.same({}, jq:start_ids("q"))
      jq:unconstrain("c")
      jq:succeed(job)
      local better = tagged({ "c", "d" }, nil, { priority = -1 })
      assert.are.same({ better }, jq:start_ids("q"))
    end)
  end)

  describe("when constraints change #once", function()
    local WAITING, RUNNING = 1500, 200

    --- Many jobs of 350 values wait, and some run, which a new constraint does not count.
    local function make_many()
      tagged_each({ "c" }, RUNNING, { priority = -1 })
      jq:start("q")
      local arguments, ids = {}, {}
      for i = 1, WAITING do
        arguments[#arguments + 1] = { v = i % 350 + 1 }
        if #arguments == 500 then
          for _, id in ipairs(jq:enqueue_each({ name = "job", queue = "q", tags = { "c" }, timeout = LONG_S },
            unpack(arguments))) do
            ids[#ids + 1] = id
          end
          arguments = {}
        end
      end
      return ids
    end

    it("are held at once by a constraint that is added", function()
      local ids = make_many()
      limit("c", 1, { by = "argument.v" })
      local jobs = jq:start("q")
      assert.are.same({ unpack(ids, 1, 350) }, space.ids(jobs))
      jq:succeed(jobs[11])
      assert.are.same({ ids[361] }, jq:start_ids("q"))
      assert.are.same({ running = RUNNING + 350, queued = WAITING - 351, done = 1 }, jq:counts("q"))
    end)
    it("start one with each pick while those behind them are still to be looked at", function()
      local ids = {}
      for round = 0, 9 do
        for i, id in ipairs(tagged_each({ "c" }, 30)) do
          ids[round * 30 + i] = id
        end
      end
      limit("c", 1, { by = "argument.v" })
      for i = 1, 30 do
        local jobs = jq:pick({ queues = "q", count = 1 })
        assert.are.same({ ids[i] }, { jobs[1] and jobs[1].id })
      end
      assert.are.equal(0, #jq:start("q"))
    end)
    it("never start against the new rule while that is carried out", function()
      local ids = make_many()
      limit("c", 3)
      local started, calls = {}, 0
      repeat
        local jobs = jq:pick({ queues = "q", count = 2 })
        for _, job in ipairs(jobs) do
          started[#started + 1] = job
        end
        calls = calls + 1
        assert.is_true(#started <= 3 and calls <= 300)
        if calls == 2 then
          local better = jq:enqueue({ name = "job", queue = "q", tags = { "c" }, priority = 9 }, { v = 1 })
          jq:cancel(better)
        end
      until jobs.next_ms ~= 0 and #jobs == 0
      assert.are.same({ ids[1], ids[2], ids[3] }, space.ids(started))
      jq:call("finish", { worker = "w" },
        { id = started[1].id, token = started[1].token, type = "success" }, msgpack.NIL,
        { id = started[2].id, token = started[2].token, type = "success" }, msgpack.NIL)
      assert.are.same({ ids[4], ids[5] }, jq:start_ids("q"))
    end)
  end)
end)
