-- Ordering keys: concurrency 1 with order strict runs the jobs of one key one after the other, in order, and a
-- job that fails holds back its successors until it succeeds or ends for good.
local space = require "support.space"

describe("a constraint with order = strict", function()
  local jq
  before_each(function()
    jq = space.new()
    jq:constrain({ id = "c", by = "argument.v", concurrency = 1, order = "strict" }, { name = "a" })
  end)
  after_each(function()
    jq:close()
  end)

  --- Jobs of one value; retries come after 2 seconds.
  ---@return string[] ids
  local function enqueue(value, count, more)
    local spec = { name = "a", retry_base = 2, retry_cap = 2, retry_jitter = 0 }
    for field, given in pairs(more or {}) do
      spec[field] = given
    end
    local ids = {}
    for i = 1, count do
      ids[i] = jq:enqueue(spec, { v = value })
    end
    return ids
  end

  describe("lets a job that fails", function()
    local ids, job
    before_each(function()
      ids = enqueue(1, 3)
      job = jq:start_one("a")
    end)

    it("hold back its successors until it runs again and succeeds", function()
      jq:fail(job)
      assert.are.same({}, jq:start_ids("a"))
      jq:pass(1.999)
      assert.are.same({}, jq:start_ids("a"))
      jq:pass(0.001)
      local jobs = jq:start("a")
      assert.are.same({ ids[1] }, space.ids(jobs))
      assert.are.equal(2, jobs[1].attempt)
      jq:succeed(jobs[1])
      assert.are.same({ ids[2] }, jq:start_ids("a"))
    end)
    it("wake a sleeper when it is due, and when it ends for good", function()
      local function sleep()
        for _ = 1, 5 do
          if jq:sleep("w1", "ch", "a", 60000) ~= 0 and not jq:is_woken("ch") then
            return
          end
        end
      end
      jq:fail(job)
      sleep()
      jq:pass(2)
      jq:tick()
      assert.is_true(jq:is_woken("ch"))
      job = jq:start("a")[1]
      sleep()
      jq:succeed(job)
      assert.is_true(jq:is_woken("ch"))
      assert.are.equal(1, #jq:start("a"))
    end)
  end)

  describe("lets a job keep its key", function()
    local ids, job
    before_each(function()
      ids = enqueue(1, 3)
      job = jq:start_one("a")
    end)
    it("and only its own", function()
      jq:release(job, 50)
      jq:cancel(ids[2])
      jq:cancel(ids[3])
      local other = enqueue(1, 1)
      assert.are.same({}, jq:start_ids("a"))
      jq:pass(50)
      local jobs = jq:start("a")
      assert.are.same({ ids[1] }, space.ids(jobs))
      jq:succeed(jobs[1])
      assert.are.same(other, jq:start_ids("a"))
    end)
  end)

  it("holds over queues: a job that waits for its retry holds back those of another queue", function()
    local first = enqueue(1, 1, { queue = "q1" })
    local second = enqueue(1, 1, { queue = "q2" })
    jq:fail(jq:start_one("q1"))
    assert.are.same({}, jq:start_ids("*"))
    jq:pass(2)
    assert.are.same({}, jq:start_ids("q2"))
    local jobs = jq:start("q1")
    assert.are.same(first, space.ids(jobs))
    jq:succeed(jobs[1])
    assert.are.same(second, jq:start_ids("q2"))
  end)
  it("taken away frees the successors of a job that waits for its retry", function()
    local ids = enqueue(1, 2)
    jq:fail(jq:start_one("a"))
    jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
    assert.are.same({ ids[2] }, jq:start_ids("a"))
  end)
  it("keeps many values in order through failures, releases and lapses", function()
    math.randomseed(3)
    local expected, seen = {}, {}
    for value = 1, 5 do
      expected[value], seen[value] = enqueue(value, 8, { timeout = 7, max_retry = 1000 }), {}
    end
    local value_of = {}
    for value, ids in ipairs(expected) do
      for _, id in ipairs(ids) do
        value_of[id] = value
      end
    end
    local done = 0
    for _ = 1, 1000 do
      for _, job in ipairs(jq:start("a")) do
        local list = seen[value_of[job.id]]
        if list[#list] ~= job.id then
          list[#list + 1] = job.id
        end
        local dice = math.random(5)
        if dice <= 2 then
          jq:succeed(job)
          done = done + 1
        elseif dice == 3 then
          jq:fail(job)
        elseif dice == 4 then
          jq:release(job, math.random(0, 3))
        end
      end
      jq:pass(math.random(0, 4))
      if done == 40 then
        break
      end
    end
    assert.are.equal(40, done)
    assert.are.same(expected, seen)
  end)
end)
