-- How much matching one call may do for the jobs it brings: jobs times constraints times conditions.
local space = require "support.space"

describe("conditions to look at #once", function()
  local MOST = 300000
  local jq = space.each()

  --- Constraints whose conditions all hold.
  ---@param own? table namespace, instead of that of the test
  ---@return table argument that fulfils them
  local function constrain(constraints, conditions, own)
    local match, argument = {}, {}
    for i = 1, conditions do
      match["argument.f" .. i], argument["f" .. i] = i, i
    end
    for i = 1, constraints do
      (own or jq):constrain({ id = "c" .. i, concurrency = 1000 }, match)
    end
    return argument
  end

  local many -- a namespace that has 100 constraints of 90 conditions
  setup(function()
    many = space.new()
    constrain(100, 90, many)
  end)
  teardown(function()
    many:close()
  end)

  ---@return table argument that fulfils all of them
  local function constrain_many()
    jq:copy(many)
    return constrain(0, 90)
  end

  --- What a call of `enqueue` takes for so many jobs.
  local function jobs(count, argument, ...)
    local arguments = { ... }
    for _ = 1, count do
      arguments[#arguments + 1] = { name = "a" }
      arguments[#arguments + 1] = argument
    end
    return arguments
  end

  it("of more than one call may have are refused as a whole", function()
    local argument = constrain_many()
    local calls = { jobs(1000, argument), jobs(math.floor(MOST / 9000) + 1, argument) }
    jq:call_list("enqueue", jobs(1, argument)) -- so that what it looks up is there
    for _, arguments in ipairs(calls) do
      jq:refuses_list("INVALID jobs: constraints would test more than 300000 conditions", "enqueue", arguments)
    end
    assert.are.equal(1, jq:counts("a").queued)
  end)

  it("of jobs that follow outcomes are counted together", function()
    local argument = constrain_many()
    jq:enqueue("first")
    jq:enqueue("first")
    local first = jq:pick({ queues = "first", count = 2 })
    local arguments = { { worker = "worker" } }
    for _, job in ipairs(first) do
      arguments[#arguments + 1] = { id = job.id, token = jq:token(job), type = "success", enqueue = 20 }
      arguments[#arguments + 1] = 1
      for _, one in ipairs(jobs(20, argument)) do
        arguments[#arguments + 1] = one
      end
    end
    jq:refuses_list("INVALID outcomes[1].enqueue: constraints would test more than", "finish", arguments)
  end)

  describe("of jobs that are there", function()
    local ids, argument
    before_each(function()
      argument = constrain_many()
      ids = {}
      for _ = 1, 34 do
        ids[#ids + 1] = jq:enqueue("a", argument)
      end
    end)

    local function changes(count)
      local arguments = {}
      for i = 1, count do
        arguments[2 * i - 1], arguments[2 * i] = { id = ids[i], priority = -i }, ""
      end
      return arguments
    end

    it("are as many when they are changed", function()
      jq:refuses_list("INVALID jobs: constraints would test more than 300000 conditions", "change", changes(34))
      assert.are.equal(33, #jq:call_list("change", changes(33)))
      assert.are.equal(-33, jq:get(ids[33]).priority)
    end)
    it("end a call that retries all that fit", function()
      jq:call("cancel", { ids = ids })
      local reply = jq:call("retry", { where = { status = "cancelled" } })
      assert.is_true(reply[2] >= 1 and reply[2] <= 2)
      assert.are_not.equal("", reply[1])
    end)
  end)

  it("are looked up for many names at the cost of one", function()
    for i = 1, 30 do
      jq:constrain({ id = "c" .. i, concurrency = 1 }, i % 2 == 0 and { name = "a" .. i } or { queue = "b" .. i })
    end
    local function enqueue(names)
      local arguments = {}
      for i = 1, 20 do
        arguments[2 * i - 1], arguments[2 * i] = { name = names .. i, queue = "b" .. i }, {}
      end
      return jq:commands(function()
        jq:call_list("enqueue", arguments)
      end)
    end
    enqueue("x") -- so that the queues are there
    enqueue("x")
    local known = enqueue("x")
    assert.is_true(enqueue("y") <= known + 1)
    assert.are.equal(2, #jq:explain(jq:enqueue({ name = "a2", queue = "b1" })).constraints)
  end)

  it("of schedules' jobs end a sweep", function()
    local argument = constrain_many()
    for i = 1, 20 do
      jq:call("schedule", { id = "s" .. i, every = 60, job = { name = "a" } }, argument)
    end
    jq:pass(60)
    local calls, made = 0, 0
    repeat
      local next_ms = jq:call("tick", {})[1]
      local waiting = jq:counts("a").queued
      assert.is_true(waiting - made <= 2)
      calls, made = calls + 1, waiting
    until next_ms ~= 0
    assert.is_true(made == 20 and calls >= 10)
  end)
end)
