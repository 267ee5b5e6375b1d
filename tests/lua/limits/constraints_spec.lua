local msgpack = require "support.msgpack"
local space = require "support.space"

describe("constraints", function()
  local jq = space.each()

  local function ids_of(spec)
    local reply = jq:call("constraints", spec or {})
    local ids = {}
    for i = 2, #reply do
      ids[i - 1] = msgpack.unpack(reply[i]).id
    end
    return ids, reply[1]
  end

  local function constrain_all(...)
    for _, id in ipairs({ ... }) do
      jq:constrain({ id = id, concurrency = 1 }, { name = "a" })
    end
  end

  it("lists constraints in order of id", function()
    constrain_all("b", "c", "a", "B", "aa")
    local ids, cursor = ids_of()
    assert.are.same({ "B", "a", "aa", "b", "c" }, ids)
    assert.are.equal("", cursor)
  end)
  it("shows those that are named, in that order, unknown ones left out", function()
    constrain_all("a", "b")
    local ids, cursor = ids_of({ ids = { "b", "nobody", "a" } })
    assert.are.same({ "b", "a" }, ids)
    assert.are.equal("", cursor)
  end)

  describe("shows live use:", function()
    it("what all keys come to, and tells the fullest", function()
      jq:constrain({ id = "c", by = "argument.v", concurrency = 2 }, { name = "a" })
      local function enqueue(v, count, queue)
        for _ = 1, count do
          jq:enqueue({ name = "a", queue = queue }, { v = v })
        end
      end
      enqueue("x", 4)
      enqueue("y", 5)
      enqueue("y", 2, "other")
      enqueue("z", 1)
      enqueue("two", 2)
      jq:start({ "a", "other" })
      local function told(spec)
        spec.ids = { "c" }
        return msgpack.unpack(jq:call("constraints", spec)[2])
      end
      local document = told({ busiest = 3 })
      assert.are.same({ 4, 4, 7, 7, 3 },
        { document.keys, document.looked, document.running, document.held, document.full })
      assert.is_nil(document.more)
      local fullest = {}
      for i, key in ipairs(document.busiest) do
        fullest[i] = { key.by, key.running, key.held }
      end
      assert.are.same({ { "y", 2, 5 }, { "x", 2, 2 }, { "two", 2, 0 } }, fullest)
      assert.are.same({}, told({ busiest = 0 }).busiest)
      assert.is_nil(told({}).held)
      local listed = msgpack.unpack(jq:call("constraints", { busiest = 3 })[2])
      assert.are.same(document, listed)
    end)
    it("of very many keys what there is time for, and says how many #once", function()
      jq:constrain({ id = "c", by = "argument.v", concurrency = 1 }, { name = "a" })
      jq:constrain({ id = "d", concurrency = 1 }, { name = "b" })
      for first = 1, 1500, 500 do
        local arguments = {}
        for i = 1, 500 do
          arguments[i] = { v = first + i }
        end
        jq:enqueue_each("a", unpack(arguments))
      end
      for _ = 1, 2 do
        jq:start("a")
      end
      local one = msgpack.unpack(jq:call("constraints", { ids = { "c" }, busiest = 3 })[2])
      assert.is_true(one.keys >= 1000 and one.looked >= 1000 and one.looked < 2100)
      assert.are.equal(one.looked, one.full)
      local reply = jq:call("constraints", { busiest = 3 })
      local listed = msgpack.unpack(reply[2])
      assert.is_true(listed.looked >= 1000 and listed.looked < one.looked and #reply == 3)
    end)
  end)
end)
