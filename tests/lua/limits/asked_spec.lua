-- How much matching one call may do for the jobs it brings: jobs times constraints times conditions.
local space = require "support.space"

describe("conditions to look at", function()
  local MOST = 300000
  local jq = space.each()

  --- Constraints whose conditions all hold.
  ---@return table argument that fulfils them
  local function constrain(constraints, conditions)
    local match, argument = {}, {}
    for i = 1, conditions do
      match["argument.f" .. i], argument["f" .. i] = i, i
    end
    for i = 1, constraints do
      jq:constrain({ id = "c" .. i, concurrency = 1000 }, match)
    end
    return argument
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

  local function micros()
    local now = jq:redis("TIME")
    return now[1] * 1000000 + now[2]
  end

  it("of more than one call may have are refused as a whole, at once", function()
    local argument = constrain(100, 90)
    local calls = { jobs(1000, argument), jobs(math.floor(MOST / 9000) + 1, argument) }
    jq:call_list("enqueue", jobs(1, argument)) -- so that what it looks up is there
    for _, arguments in ipairs(calls) do
      local began = micros()
      jq:refuses_list("INVALID jobs: constraints have more than 300000 conditions", "enqueue", arguments)
      assert.is_true(micros() - began < 1000000)
    end
    assert.are.equal(1, jq:counts("a").queued)
  end)

  it("of as many as one call may have are looked at", function()
    local argument = constrain(100, 90)
    local arguments = jobs(math.floor(MOST / 9000), argument)
    assert.are.equal(#arguments, #jq:call_list("enqueue", arguments))
    assert.are.equal(#arguments / 2, jq:counts("a").queued)
  end)

  it("count only where names and queues let them through", function()
    local argument = constrain(1, 90)
    for i = 2, 100 do
      jq:constrain({ id = "c" .. i, concurrency = 1 }, { name = "b", ["argument.x"] = 1 })
    end
    assert.are.equal(2000, #jq:call_list("enqueue", jobs(1000, argument)))
  end)

  it("do not count where names and queues are all there is", function()
    for i = 1, 400 do
      jq:constrain({ id = "c" .. i, concurrency = 1000 }, { name = "*" })
    end
    assert.are.equal(2000, #jq:call_list("enqueue", jobs(1000, 1)))
  end)

  it("of jobs that follow outcomes are counted together", function()
    jq:enqueue("first")
    jq:enqueue("first")
    local first = jq:pick({ queues = "first", count = 2 })
    local argument = constrain(100, 90)
    local arguments = { { worker = "worker" } }
    for _, job in ipairs(first) do
      arguments[#arguments + 1] = { id = job.id, token = jq:token(job), type = "success", enqueue = 20 }
      arguments[#arguments + 1] = 1
      for _, one in ipairs(jobs(20, argument)) do
        arguments[#arguments + 1] = one
      end
    end
    jq:refuses_list("INVALID outcomes[1].enqueue: constraints have more than", "finish", arguments)
  end)

  it("of a single job are not counted", function()
    local list = { "a\0b" } -- which makes all of it be looked at one by one
    for i = 2, 900 do
      list[i] = i
    end
    for i = 1, 400 do
      jq:constrain({ id = "c" .. i, concurrency = 1000 }, { ["argument.x"] = list })
    end
    local one, argument = { name = "a" }, { x = 900 }
    jq:call("enqueue", one, argument)
    jq:refuses("INVALID jobs: constraints have more than", "enqueue", one, argument, one, argument)
    jq:enqueue("first")
    local outcome = { id = 0, type = "success", enqueue = 1 }
    local job = jq:pick({ queues = "first", count = 1 })[1]
    outcome.id, outcome.token = job.id, jq:token(job)
    local answer = jq:call_list("finish", { { worker = "worker" }, outcome, 1, one, argument })
    assert.are.equal("done", answer[1][1])
  end)

  it("that are new are looked up once, and then read", function()
    local argument = constrain(3, 5)
    jq:call_list("enqueue", jobs(2, argument))
    local commands = jq:commands(function()
      jq:call_list("enqueue", jobs(2, argument))
    end)
    jq:call_list("enqueue", jobs(1, argument))
    assert.are.equal(commands, jq:commands(function()
      jq:call_list("enqueue", jobs(2, argument))
    end))
  end)
end)
