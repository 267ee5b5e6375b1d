-- Room that one lane of held jobs cannot use is another's.
local space = require "support.space"

describe("held jobs", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  local LONG_S = 100000 -- leases that outlast every test

  --- Limits jobs that carry the tag.
  local function limit(id, concurrency, more)
    local spec = { id = id, concurrency = concurrency }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    return jq:constrain(spec, { tags = id })
  end

  --- A job in queue q that carries these tags.
  local function tagged(tags, argument, more)
    local spec = { name = "job", queue = "q", tags = tags[1] and tags or nil, timeout = LONG_S }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    return jq:enqueue(spec, argument)
  end

  --- One job for each value from 1 to count.
  local function tagged_each(tags, count, more)
    local spec = { name = "job", queue = "q", tags = tags[1] and tags or nil, timeout = LONG_S }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    local ids = {}
    for first = 1, count, 500 do
      local arguments = {}
      for i = first, math.min(count, first + 499) do
        arguments[#arguments + 1] = { v = i }
      end
      for _, id in ipairs(jq:enqueue_each(spec, unpack(arguments))) do
        ids[#ids + 1] = id
      end
    end
    return ids
  end

  describe("get room that another lane cannot use", function()
    it("when that waits for something else then", function()
      limit("c", 1)
      limit("d", 1)
      tagged({ "c" })
      tagged({ "d" })
      local of_c = unpack(jq:start("q"))
      tagged({ "c", "d" }, nil, { priority = -1 })
      local waits = tagged({ "c" })
      assert.are.same({}, jq:start_ids("q"))
      jq:succeed(of_c)
      assert.are.same({ waits }, jq:start_ids("q"))
    end)
    it("when hundreds wait for something else each", function()
      limit("c", 1)
      limit("d", 1, { by = "argument.v" })
      tagged({ "c" })
      local of_c = jq:start_one("q")
      tagged_each({ "d" }, 350)
      local of_d = jq:start("q")
      assert.are.equal(350, #of_d)
      local both = tagged_each({ "c", "d" }, 350, { priority = -1 })
      local waits = tagged({ "c" })
      assert.are.same({}, jq:start_ids("q"))
      jq:succeed(of_c)
      local jobs = jq:start("q")
      assert.are.same({ waits }, space.ids(jobs))
      jq:succeed(of_d[200])
      assert.are.same({}, jq:start_ids("q"))
      jq:succeed(jobs[1])
      assert.are.same({ both[200] }, jq:start_ids("q"))
      jq:succeed(of_d[7])
      jq:succeed({ id = both[200], attempt = 1 })
      assert.are.same({ both[7] }, jq:start_ids("q"))
    end)
    it("when it goes from key to key and back", function()
      limit("c", 1)
      limit("d", 1)
      tagged({ "c" })
      tagged({ "d" })
      local of_c, of_d = unpack(jq:start("q"))
      local both = tagged({ "c", "d" }, nil, { priority = -1 })
      for _ = 1, 5 do
        tagged({ "c" })
        tagged({ "d" })
      end
      for _ = 1, 5 do
        jq:succeed(of_c)
        local next_c = jq:start("q")
        assert.are.equal(1, #next_c)
        jq:succeed(of_d)
        local next_d = jq:start("q")
        assert.are.equal(1, #next_d)
        of_c, of_d = next_c[1], next_d[1]
      end
      jq:succeed(of_c)
      assert.are.same({}, jq:start_ids("q"))
      jq:succeed(of_d)
      assert.are.same({ both }, jq:start_ids("q"))
    end)
    for what, go in pairs({
      ["is cancelled"] = function(id)
        jq:cancel(id)
      end,
      ["expires"] = function()
        jq:pass(5)
      end,
      ["is in a queue that is paused"] = function()
        jq:queue({ name = "p", paused = true })
      end,
      ["is in a queue that nobody asks for"] = function() end,
      ["is matched by a new constraint that is closed"] = function()
        limit("p", 1)
        jq:hold("p", 1000)
      end,
    }) do
      for _, moment in ipairs({ "before", "after" }) do
        it("when its job " .. what .. ", " .. moment .. " the room came", function()
          limit("c", 1)
          tagged({ "c" })
          local job = jq:start_one("q")
          local best = jq:enqueue({ name = "job", queue = "p", priority = -9, tags = { "c", "p" }, expires_in = 5 })
          local waits = tagged({ "c" })
          assert.are.same({}, jq:start_ids({ "p", "q" }))
          if moment == "before" then
            go(best)
            jq:succeed(job)
          else
            jq:succeed(job)
            go(best)
          end
          assert.are.same({ waits }, jq:start_ids(what:find("nobody", 1, true) and "q" or { "p", "q" }))
        end)
      end
    end
    it("when the job that was to have it is released with a delay", function()
      limit("c", 1)
      tagged({ "c" })
      local job = jq:start_one("q")
      local first, second = tagged({ "c" }), tagged({ "c" })
      jq:start("q")
      jq:succeed(job)
      job = jq:start("q")[1]
      assert.are.equal(first, job.id)
      jq:release(job, 60)
      assert.are.same({ second }, jq:start_ids("q"))
    end)
    it("as many as there is room for, the best of many lanes", function()
      limit("c", 3)
      limit("d", 1, { by = "argument.v" })
      tagged_each({ "c", "d" }, 3)
      local jobs = jq:start("q")
      local ids = tagged_each({ "c", "d" }, 40)
      assert.are.same({}, jq:start_ids("q"))
      limit("c", 8)
      assert.are.same({ ids[4], ids[5], ids[6], ids[7], ids[8] }, jq:start_ids("q"))
      jq:succeed(jobs[2])
      assert.are.same({ ids[2] }, jq:start_ids("q"))
    end)
    it("hundreds in one pick", function()
      limit("c", 1, { by = "argument.v" })
      local ids = tagged_each({ "c" }, 900)
      assert.are.same({ unpack(ids, 1, 100) }, jq:pick_ids({ queues = "q", count = 100 }))
      assert.are.same({ unpack(ids, 101) }, jq:start_ids({ queues = "q", count = 800 }))
    end)
    it("from a rate, one lane after the other", function()
      jq:constrain({ id = "c", rate = { limit = 2, period = 10 } }, { tags = "c" })
      limit("d", 1, { by = "argument.v" })
      local ids = tagged_each({ "c", "d" }, 5)
      local again = tagged_each({ "c", "d" }, 2, { priority = -1 })
      assert.are.same(again, jq:start_ids("q"))
      jq:pass(10)
      assert.are.same({ ids[3], ids[4] }, jq:start_ids("q")) -- 1 and 2 are held by d
      jq:pass(10)
      assert.are.same({ ids[5] }, jq:start_ids("q"))
      jq:succeed({ id = again[1], attempt = 1 })
      assert.are.same({ ids[1] }, jq:start_ids("q"))
    end)
  end)
end)
