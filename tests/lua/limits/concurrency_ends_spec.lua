-- Constraints with concurrency: several on one job, and jobs that end while they are held.
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  --- Limits the jobs of one name, or those that match.
  local function limit(concurrency, match, more)
    local spec = { id = "c", concurrency = concurrency }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    return jq:constrain(spec, match or { name = "a" })
  end

  describe("over several constraints on one job", function()
    --- Jobs of one name that carry tags.
    local function tagged(...)
      return jq:enqueue({ name = "a", tags = { ... } })
    end
    local function running(...)
      local counts = {}
      for i, id in ipairs({ ... }) do
        counts[i] = jq:constraint(id).running
      end
      return counts
    end
    before_each(function()
      jq:constrain({ id = "x", concurrency = 1 }, { tags = "x" })
      jq:constrain({ id = "y", concurrency = 1 }, { tags = "y" })
    end)

    it("takes all or none", function()
      local only_y = tagged("y")
      local y = jq:start_one("a")
      assert.are.equal(only_y, y.id)
      local both = tagged("x", "y")
      local only_x = tagged("x")
      local x = jq:start("a")
      assert.are.same({ only_x }, space.ids(x))
      assert.are.same({ 1, 1 }, running("x", "y"))
      jq:succeed(y)
      assert.are.same({}, jq:start_ids("a"))
      assert.are.same({ 1, 0 }, running("x", "y"))
      jq:succeed(x[1])
      assert.are.same({ both }, jq:start_ids("a"))
      assert.are.same({ 1, 1 }, running("x", "y"))
    end)
    it("gives all back", function()
      tagged("x", "y")
      local job = jq:start_one("a")
      local x, y = tagged("x"), tagged("y")
      assert.are.same({}, jq:start_ids("a"))
      jq:succeed(job)
      assert.are.same({ x, y }, jq:start_ids("a"))
    end)
    it("passes room on that a better job cannot use", function()
      tagged("x")
      tagged("y")
      local x, y = unpack(jq:start("a"))
      local both, only_x, only_y = tagged("x", "y"), tagged("x"), tagged("y")
      assert.are.same({}, jq:start_ids("a"))
      jq:succeed(x)
      local next_x = jq:start("a")
      assert.are.same({ only_x }, space.ids(next_x))
      jq:succeed(y)
      assert.are.same({ only_y }, jq:start_ids("a"))
      jq:succeed(next_x[1])
      assert.are.same({}, jq:start_ids("a"))
      assert.are.equal("queued", jq:status(both))
    end)
    it("holds a job until the last of ten has room", function()
      local tags = {}
      local holders = {}
      for i = 1, 10 do
        tags[i] = "t" .. i
        jq:constrain({ id = tags[i], concurrency = 1 }, { tags = tags[i] })
        tagged(tags[i])
      end
      for _, job in ipairs(jq:start("a")) do
        holders[#holders + 1] = job
      end
      assert.are.equal(10, #holders)
      local all = tagged(unpack(tags))
      for i = 10, 1, -1 do
        assert.are.same({}, jq:start_ids("a"))
        jq:succeed(holders[i])
      end
      assert.are.same({ all }, jq:start_ids("a"))
      assert.are.same({ 1, 1, 1 }, running("t1", "t5", "t10"))
    end)
    it("lets the smaller of two limits decide", function()
      jq:constrain({ id = "x", concurrency = 5 }, { tags = "x" })
      jq:constrain({ id = "y", concurrency = 2 }, { tags = "y" })
      local ids = {}
      for i = 1, 6 do
        ids[i] = tagged("x", "y")
      end
      assert.are.same({ ids[1], ids[2] }, jq:start_ids("a"))
      for i = 1, 5 do
        ids[i] = tagged("x")
      end
      assert.are.same({ ids[1], ids[2], ids[3] }, jq:start_ids("a"))
    end)
    it("may hold two limits of one value, of another and of all", function()
      jq:constrain({ id = "customer", by = "argument.c", concurrency = 2 }, { name = "a" })
      jq:constrain({ id = "country", by = "argument.k", concurrency = 3 }, { name = "a" })
      jq:constrain({ id = "all", concurrency = 4 }, { name = "a" })
      local ids = jq:enqueue_each("a", { c = 1, k = 1 }, { c = 1, k = 2 }, { c = 1, k = 3 }, { c = 2, k = 1 },
        { c = 2, k = 1 }, { c = 3, k = 1 }, { c = 3, k = 2 }, { c = 4, k = 3 })
      local jobs = jq:start("a")
      assert.are.same({ ids[1], ids[2], ids[4], ids[5] }, space.ids(jobs))
      jq:succeed(jobs[1]) -- customer 1 and country 1 have room for one
      local more = jq:start("a")
      assert.are.same({ ids[3] }, space.ids(more))
      jq:succeed(jobs[3])
      assert.are.same({ ids[6] }, jq:start_ids("a"))
    end)
    it("is taken by the constraints that match, and no other", function()
      local neither = jq:enqueue_all("a", "a", "a")
      local x = tagged("x")
      tagged("x")
      local y = tagged("y")
      assert.are.same({ neither[1], neither[2], neither[3], x, y }, jq:start_ids("a"))
      assert.are.same({ 1, 1 }, running("x", "y"))
    end)
  end)

  describe("holds a job whose time runs out", function()
    it("and then ends it as expired", function()
      limit(1)
      local ids = jq:enqueue_all("a", { name = "a", expires_in = 5 }, "a")
      local job = jq:start_one("a")
      jq:pick("a")
      jq:pass(5)
      jq:settle()
      local document = jq:get(ids[2])
      assert.are.same({ "error", "expired" }, { document.status, document.reason })
      jq:succeed(job)
      assert.are.same({ ids[3] }, jq:start_ids("a"))
    end)
    it("and does not start it when room comes later", function()
      limit(1)
      jq:enqueue("a")
      local job = jq:start_one("a")
      local ids = jq:enqueue_all({ name = "a", expires_in = 5 }, { name = "a", expires_in = 7 }, "a")
      jq:pick("a")
      jq:pass(6)
      jq:succeed(job)
      assert.are.same({ ids[2] }, jq:start_ids("a"))
      assert.are.same({ "error", "running", "queued" }, jq:statuses(ids))
    end)
    it("gives its room to the next of another key", function()
      limit(1, nil, { by = "argument.v" })
      jq:enqueue("a", { v = 1 })
      jq:start("a")
      local dying = jq:enqueue({ name = "a", expires_in = 2 }, { v = 1 })
      local other = jq:enqueue("a", { v = 2 })
      jq:pass(2)
      assert.are.same({ other }, jq:start_ids("a"))
      assert.are.equal("error", jq:status(dying))
    end)
    it("many at a time, in steps", function()
      limit(1)
      jq:enqueue({ name = "a", timeout = 100 })
      jq:start("a")
      jq:enqueue_many({ name = "a", expires_in = 3 }, 700)
      local good = jq:enqueue("a")
      jq:pass(3)
      assert.are.same({}, jq:start_ids("a"))
      jq:settle()
      assert.are.same({ queued = 1, running = 1, error = 700 }, jq:counts("a"))
      assert.are.equal("queued", jq:status(good))
    end)
  end)

  describe("holds a job that is cancelled", function()
    local job, ids
    before_each(function()
      limit(1)
      jq:enqueue("a")
      job = jq:start_one("a")
      ids = jq:enqueue_many({ name = "a" }, 5)
      jq:pick("a")
    end)

    local function starts(expected)
      for _, id in ipairs(expected) do
        jq:succeed(job)
        local jobs = jq:start("a")
        assert.are.same({ id }, space.ids(jobs))
        job = jobs[1]
      end
      jq:succeed(job)
      assert.are.same({}, jq:start_ids("a"))
    end

    it("at the head, and starts the others", function()
      assert.are.equal("queued", jq:cancel(ids[1]))
      assert.are.same({ cancelled = 1, queued = 4, running = 1 }, jq:counts("a"))
      starts({ ids[2], ids[3], ids[4], ids[5] })
    end)
    it("in the middle, and starts the others", function()
      jq:cancel(ids[3])
      starts({ ids[1], ids[2], ids[4], ids[5] })
    end)
    it("at the end, and starts the others", function()
      jq:cancel(ids[5])
      starts({ ids[1], ids[2], ids[3], ids[4] })
    end)
    it("with all others of its lane, and starts what comes later", function()
      jq:call("cancel", { ids = ids })
      assert.are.same({ cancelled = 5, running = 1 }, jq:counts("a"))
      starts({ jq:enqueue("a") })
    end)
    it("with a thousand others in one call", function()
      local many = jq:enqueue_many({ name = "a", priority = -1 }, 1000)
      jq:pick("a")
      jq:call("cancel", { ids = many })
      starts(ids)
    end)
    it("after room came back and before it starts", function()
      jq:succeed(job)
      jq:cancel(ids[1])
      job = jq:start_one("a")
      assert.are.equal(ids[2], job.id)
      jq:cancel(ids[3])
      starts({ ids[4], ids[5] })
    end)
  end)
end)
