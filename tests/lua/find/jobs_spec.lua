local msgpack = require "support.msgpack"
local space = require "support.space"

-- What is found, and in which order, says the model.
describe("jobs", function()
  local jq = space.each()

  local function list(where)
    return space.ids(jq:pages("jobs", { where = where }))
  end

  it("have small arguments, though they are brief", function()
    jq:enqueue_each("a", msgpack.pack("12345678"), msgpack.pack("123456789"))
    local documents = jq:pages("jobs", { brief = true, argument_max = 9 })
    assert.are.same({ "12345678" }, { documents[1].argument, documents[2].argument })
    assert.is_nil(documents[1].result)
    assert.are.equal("123456789", jq:pages("jobs", { argument_max = 0 })[2].argument)
  end)

  it("are told as many at a time as a reply has room for, one whatever it carries", function()
    local large = msgpack.pack(("x"):rep(4194304))
    local ids = jq:enqueue_each("a", large, msgpack.NIL, large, large)
    local function told(...)
      return #jq:call("get", ...)
    end
    assert.are.same({ 1, 2, 2 }, { told(unpack(ids)), told(ids[2], ids[3], ids[4]), told(ids[2], ids[2]) })
  end)

  describe("with looked", function()
    it("look at a bounded number, however few match", function()
      local specs = {}
      for i = 1, 1000 do
        specs[i] = { name = "a" }
      end
      for _ = 1, 3 do
        jq:enqueue_all(unpack(specs))
      end
      local looked, cursor, calls = 0, nil, 0
      repeat
        local reply = jq:call("jobs", { where = { match = { ["argument.x"] = 1 } }, looked = true, cursor = cursor })
        cursor, looked, calls = reply[1], looked + reply[2], calls + 1
        assert.is_nil(reply[3])
      until cursor == ""
      assert.are.equal(3000, looked)
      assert.is_true(calls > 2 and calls < 20, calls)
    end)
  end)

  it("are created from a moment on, and before another", function()
    local ids = {}
    for i = 1, 4 do
      ids[i] = jq:enqueue("a")
      jq:pass(1)
    end
    assert.are.same({ ids[2], ids[3] }, list({ from_ms = space.START_MS + 1000, to_ms = space.START_MS + 3000 }))
    assert.are.same({ ids[4] }, list({ from_ms = space.START_MS + 3000 }))
  end)

  describe("over pages", function()
    it("go on behind a job that went away, and a queue that went away", function()
      local ids = jq:enqueue_all("a", "a", "b", "c", "c")
      local first = jq:call("jobs", { count = 1 })
      jq:call("discard", { ids = { ids[1] } })
      local second = jq:call("jobs", { count = 2, cursor = first[1] })
      assert.are.equal(ids[2], msgpack.unpack(second[2]).id)
      assert.are.equal(ids[3], msgpack.unpack(second[3]).id)
      jq:call("discard", { ids = { ids[3] } })
      jq:call("forget", { name = "b" })
      local third = jq:call("jobs", { cursor = second[1] })
      assert.are.equal(ids[4], msgpack.unpack(third[2]).id)
      assert.are.equal(3, #third)
    end)
    it("end when many queues have none of them #once", function()
      for i = 1, 1100 do
        jq:queue("q" .. i)
      end
      local id = jq:enqueue("z")
      assert.are.same({ id }, list())
      assert.are.same({}, list({ name = "none" }))
    end)
    it("cost the same wherever they are #once", function()
      jq:enqueue_many({ name = "a", delay = 100 }, 5000)
      for _, newest in ipairs({ false, true }) do
        local costs, cursor = {}, nil
        repeat
          costs[#costs + 1] = jq:commands(function()
            cursor = jq:call("jobs", { where = { queue = "a" }, count = 100, cursor = cursor, newest = newest })[1]
          end)
        until cursor == ""
        assert.is_true(#costs >= 50)
        for i = 2, 50 do
          assert.is_true(math.abs(costs[i] - costs[1]) <= 6, costs[i] .. " and " .. costs[1])
        end
      end
    end)
  end)
end)
