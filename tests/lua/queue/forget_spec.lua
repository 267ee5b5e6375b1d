local msgpack = require "support.msgpack"
local space = require "support.space"

describe("forget", function()
  local jq = space.each()

  local function forget(name)
    return jq:call("forget", { name = name })
  end

  local function queues()
    local names = {}
    local reply = jq:call("queues", {})
    for i = 2, #reply do
      names[i - 1] = msgpack.unpack(reply[i]).name
    end
    return names
  end
  it("takes a queue away that had jobs, and nothing of it stays", function()
    jq:pick("*")
    jq:pick("a*")
    jq:enqueue({ name = "a", expires_in = 100 })
    jq:enqueue({ name = "b", queue = "a", delay = 5 })
    jq:enqueue("other")
    jq:cancel(jq:enqueue("a"))
    jq:fail(jq:take("a"))
    jq:call("discard", { where = { queue = "a" } })
    forget("a")
    assert.are.same({ "other" }, queues())
    for _, key in ipairs(jq:keys()) do
      assert.is_falsy(key:find(":a$") or key:find(":a\0", 1, true), key)
    end
    for _, member in ipairs(jq:redis("ZRANGE", jq.name .. ":due", 0, -1)) do
      assert.is_falsy(member:find("^.a$"), member)
    end
    assert.are.equal(0, jq:redis("EXISTS", jq.name .. ":heads:a*"))
  end)
  it("takes a fair queue away with its turns", function()
    for _ = 1, 2 do
      jq:queue({ name = "a", fair = { by = "argument" } })
      local first = jq:enqueue_each("a", "x", "y")[1]
      assert.are.equal(first, jq:start({ queues = "a", count = 1 })[1].id)
      jq:call("cancel", { where = { queue = "a" } })
      jq:call("discard", { where = { queue = "a" } })
      forget("a")
    end
  end)
  it("takes a queue away that a key of a constraint still knows, for good", function()
    jq:constrain({ id = "c", concurrency = 1 }, { name = "*" })
    jq:enqueue("b")
    local running = jq:start_one("b")
    jq:enqueue_all("a", "a")
    assert.are.same({}, jq:start_ids("a"))
    jq:call("discard", { where = { queue = "a" } })
    forget("a")
    jq:succeed(running)
    jq:settle()
    assert.are.same({ "b" }, queues())
    local ids = jq:enqueue_all("a", "a")
    assert.are.same({ ids[1] }, jq:start_ids("a"))
  end)
end)
